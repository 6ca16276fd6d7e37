import * as THREE from 'three'

/** Lines of equal u and v on a surface, a tenth apart, so that its shape is seen where its colours are even. */
export function surfaceMaterial(): THREE.Material {
  const material = new THREE.MeshStandardMaterial({
    vertexColors: true,
    side: THREE.DoubleSide,
    roughness: 0.75,
    metalness: 0,
    polygonOffset: true,
    polygonOffsetFactor: 1,
    polygonOffsetUnits: 1,
  })
  material.defines = { ...material.defines, USE_UV: '' }
  material.onBeforeCompile = (shader) => {
    shader.fragmentShader = shader.fragmentShader.replace(
      '#include <color_fragment>',
      `#include <color_fragment>
      vec2 cell = vUv * 10.0;
      vec2 width = max(fwidth(cell), vec2(1e-4));
      vec2 away = abs(fract(cell - 0.5) - 0.5) / width;
      float line = 1.0 - smoothstep(0.2, 1.1, min(away.x, away.y));
      float fine = 1.0 - smoothstep(0.15, 0.5, max(width.x, width.y));
      float bright = dot(diffuseColor.rgb, vec3(0.2126, 0.7152, 0.0722));
      diffuseColor.rgb = mix(diffuseColor.rgb, vec3(bright < 0.18 ? 0.75 : 0.0), 0.2 * line * fine);`,
    )
  }
  return material
}
