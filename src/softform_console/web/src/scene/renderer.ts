let known: { webgl: boolean; software: boolean } | null = null

function probe(): { webgl: boolean; software: boolean } {
  if (known) return known
  const gl = document.createElement('canvas').getContext('webgl2')
  const names = gl?.getExtension('WEBGL_debug_renderer_info')
  const name = gl ? String(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) : ''
  gl?.getExtension('WEBGL_lose_context')?.loseContext()
  known = { webgl: gl !== null, software: /swiftshader|llvmpipe|software/i.test(name) }
  return known
}

/** Whether this browser draws in 3D at all. */
export function hasWebGL(): boolean {
  return probe().webgl
}

/** Whether the processor draws in place of a graphics card. */
export function isSoftwareRendered(): boolean {
  return probe().software
}
