import * as THREE from 'three'
import type { Place } from './uv'

/** Whose graphics card may cast rays at large meshes, null: nobody's; and whether it does though it were slower. */
export const graphics = { renderer: null as THREE.WebGLRenderer | null, always: false }

export type Caster = 'graphics' | 'processor'
/** Times of casts at large meshes that had moved, ms. */
const times: Record<Caster, number[]> = { graphics: [], processor: [] }
const TRIES = 5

/** Who casts the next ray at a large mesh: each a few times, and then who took less time in the middle of these. */
export function quickerCaster(): Caster {
  if (!graphics.renderer || graphics.always) return graphics.renderer ? 'graphics' : 'processor'
  const [byGraphics, byProcessor] = [times.graphics, times.processor].map((one) => one.toSorted((a, b) => a - b))
  if (byGraphics.length + byProcessor.length < 2 * TRIES)
    return byGraphics.length <= byProcessor.length ? 'graphics' : 'processor'
  return byGraphics[TRIES >> 1] <= byProcessor[TRIES >> 1] ? 'graphics' : 'processor'
}

/** Note how long a cast took, ms. */
export function noteCast(caster: Caster, time: number): void {
  if (times[caster].length < TRIES) times[caster].push(time)
}

/** Texels in a row of the textures, and pixels in a row of the target. */
const ROW = 1024
/** Most rays at once. */
export const MOST_RAYS = 2048

/** Places are as the ray sees them before they are compared: rounding is a part of what is near, not of the distance. */
const VERTEX = `
precision highp float; precision highp int; precision highp sampler2D; precision highp usampler2D;
uniform sampler2D places, rays;
uniform usampler2D corners;
uniform vec2 size;
uniform float cut;
flat out vec3 met;
vec3 place(uint vertex) { return texelFetch(places, ivec2(vertex % ${ROW}u, vertex / ${ROW}u), 0).xyz; }
float across(vec2 a, vec2 b) { return a.x * b.y - a.y * b.x; }
void main() {
  vec3 origin = texelFetch(rays, ivec2(0, gl_InstanceID), 0).xyz, along = texelFetch(rays, ivec2(1, gl_InstanceID), 0).xyz;
  vec3 right = normalize(cross(along, abs(along.z) < 0.8 ? vec3(0, 0, 1) : vec3(1, 0, 0)));
  mat3 view = transpose(mat3(right, cross(along, right), along));
  uvec3 corner = texelFetch(corners, ivec2(gl_VertexID % ${ROW}, gl_VertexID / ${ROW}), 0).xyz;
  mat3 at = mat3(place(corner.x), place(corner.y), place(corner.z));
  mat3 seen = view * mat3(at[0] - origin, at[1] - origin, at[2] - origin);
  vec3 areas = vec3(across(seen[1].xy, seen[2].xy), across(seen[2].xy, seen[0].xy), across(seen[0].xy, seen[1].xy));
  float area = areas.x + areas.y + areas.z;
  vec3 weights = areas / (area == 0.0 ? 1.0 : area);
  float far = dot(weights, vec3(seen[0].z, seen[1].z, seen[2].z));
  bool isMet = area != 0.0 && min(weights.x, min(weights.y, weights.z)) >= 0.0 && far >= 0.0 && (at * weights).x <= cut;
  ivec2 pixel = ivec2(gl_InstanceID % ${ROW}, gl_InstanceID / ${ROW});
  gl_PointSize = 1.0;
  gl_Position = isMet ? vec4((2.0 * vec2(pixel) + 1.0) / size - 1.0, (far - 1.0) / (far + 1.0), 1.0) : vec4(2, 2, 2, 1);
  met = vec3(gl_VertexID + 1, weights.yz);
}`
const FRAGMENT = `
precision highp float;
flat in vec3 met;
out vec4 colour;
void main() { colour = vec4(met, 1.0); }`

/**
 * Picks by the graphics card, after paper 002, Sec. III-B: a pixel on the ray tells the triangle and the place in it.
 *
 * There the mesh is drawn as the ray sees it, and what is told is as exact as a pixel is small. Here each triangle is one
 * point, drawn onto the ray's pixel at the depth where the ray meets it, and nowhere if it does not: no pixel has a
 * width, one pass tells number and coordinates of one and the same pose, and floats take both as they are. The number
 * is one more than the triangle's; none is 0.
 */
export class Picker {
  private readonly places: THREE.DataTexture
  private readonly rays = texture(new Float32Array(8 * MOST_RAYS), 2, MOST_RAYS)
  private readonly geometry = new THREE.InstancedBufferGeometry()
  private readonly material: THREE.RawShaderMaterial
  private readonly scene = new THREE.Scene()
  private readonly camera = new THREE.Camera()
  private readonly target = new THREE.WebGLRenderTarget(1, 1, {
    type: THREE.FloatType,
    minFilter: THREE.NearestFilter,
    magFilter: THREE.NearestFilter,
  })

  constructor(
    readonly renderer: THREE.WebGLRenderer,
    triangles: Uint32Array,
    vertices: number,
  ) {
    this.places = texture(new Float32Array(4 * ROW * Math.ceil(vertices / ROW)), ROW)
    const count = triangles.length / 3
    const four = new Uint32Array(4 * ROW * Math.ceil(count / ROW))
    for (let i = 0; i < count; i++) four.set(triangles.subarray(3 * i, 3 * i + 3), 4 * i)
    const uniforms = { places: this.places, rays: this.rays, corners: texture(four, ROW), size: null, cut: Infinity }
    this.material = new THREE.RawShaderMaterial({
      glslVersion: THREE.GLSL3,
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      uniforms: Object.fromEntries(Object.entries(uniforms).map(([name, value]) => [name, { value }])),
      blending: THREE.NoBlending,
    })
    this.geometry.setDrawRange(0, count)
    const points = new THREE.Points(this.geometry, this.material)
    points.frustumCulled = false
    this.scene.add(points)
  }

  /** Take over where the vertices (3 n) are. */
  moveTo(positions: Float32Array): void {
    const four = this.places.image.data as Float32Array
    for (let i = 0, k = 0; i < positions.length; i += 3, k += 4) {
      four[k] = positions[i]
      four[k + 1] = positions[i + 1]
      four[k + 2] = positions[i + 2]
    }
    this.places.needsUpdate = true
  }

  /** What each ray meets first with x up to `cut`, in the vertices' frame; null: nothing. */
  met(rays: THREE.Ray[], cut = Infinity): (Place | null)[] {
    const { renderer, target, material } = this
    const width = Math.min(rays.length, ROW)
    const height = Math.ceil(rays.length / ROW)
    const data = this.rays.image.data as Float32Array
    rays.forEach(({ origin, direction }, i) => {
      origin.toArray(data, 8 * i)
      direction.toArray(data, 8 * i + 4)
    })
    this.rays.needsUpdate = true
    target.setSize(width, height)
    this.geometry.instanceCount = rays.length
    material.uniforms.size.value = new THREE.Vector2(width, height)
    material.uniforms.cut.value = Math.min(cut, 1e30)
    const [before, isImmersed] = [renderer.getRenderTarget(), renderer.xr.enabled]
    renderer.xr.enabled = false // else the eyes of a headset would look
    renderer.setRenderTarget(target)
    renderer.render(this.scene, this.camera)
    renderer.setRenderTarget(before)
    renderer.xr.enabled = isImmersed
    const told = new Float32Array(4 * width * height)
    renderer.readRenderTargetPixels(target, 0, 0, width, height, told)
    return rays.map((_, i) => {
      const [number, b, c] = told.subarray(4 * i, 4 * i + 3)
      return number ? { triangle: number - 1, weights: [1 - b - c, b, c] } : null
    })
  }

  dispose(): void {
    for (const one of [this.places, this.rays, this.material.uniforms.corners.value as THREE.Texture]) one.dispose()
    this.geometry.dispose()
    this.material.dispose()
    this.target.dispose()
  }
}

/** Numbers for a shader, four a texel. */
function texture(data: Float32Array | Uint32Array, width: number, height = data.length / 4 / width): THREE.DataTexture {
  const [format, type] =
    data instanceof Uint32Array ? [THREE.RGBAIntegerFormat, THREE.UnsignedIntType] : [THREE.RGBAFormat, THREE.FloatType]
  const made = new THREE.DataTexture(data, width, height, format as THREE.PixelFormat, type)
  if (data instanceof Uint32Array) made.internalFormat = 'RGBA32UI'
  made.needsUpdate = true
  return made
}
