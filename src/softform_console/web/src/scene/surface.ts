import * as THREE from 'three'
import { MeshBVH } from 'three-mesh-bvh'
import { colourValues } from '../colours'
import type { SceneFrame, Topology } from '../frames'
import { Clusters, NOWHERE } from './clusters'
import { graphics, noteCast, Picker, quickerCaster, type Caster } from './picker'
import { placeOf, uvAt, type Place, type Uv } from './uv'

/** Grey of a surface that is not coloured, linear. */
const PLAIN = 0.3

/** Triangles from which a graphics card may cast the rays: clusters of fewer take no time to speak of. */
const MANY = 20_000

const vertex = new THREE.Vector3()

/** A predicted mesh of one topology: geometry, colours, and clusters that are brought up to date when a ray is cast. */
export class Surface {
  readonly geometry = new THREE.BufferGeometry()
  /** One standard deviation of each vertex, m, or null. */
  uncertainty: Float32Array | null = null
  stamp = 0
  stale = true
  /** What rays are cast at: clusters by the processor, or a large mesh by the graphics card; whether each has moved. */
  private clusters: Clusters | null = null
  private picker: Picker | null = null
  private moved: Record<Caster, boolean> = { processor: true, graphics: true }
  private readonly places = new Map<string, Place | null>()

  constructor(readonly topology: Topology) {
    const { vertices, triangles, uv } = topology
    this.geometry.setIndex(new THREE.BufferAttribute(triangles, 1))
    this.geometry.setAttribute('position', dynamic(new Float32Array(3 * vertices)))
    this.geometry.setAttribute('normal', dynamic(new Float32Array(3 * vertices)))
    this.geometry.setAttribute('color', dynamic(new Float32Array(3 * vertices).fill(1)))
    this.geometry.setAttribute('uv', new THREE.BufferAttribute(uv, 2))
  }

  /** Whether there is a surface; a robot that is known by frames alone has vertices without triangles. */
  get hasTriangles(): boolean {
    return this.topology.triangles.length > 0
  }

  get positions(): Float32Array {
    return this.geometry.attributes.position.array as Float32Array
  }

  /** Take over the vertices of a frame. */
  apply(frame: SceneFrame): void {
    this.positions.set(frame.positions)
    this.geometry.attributes.position.needsUpdate = true
    this.geometry.computeVertexNormals()
    this.uncertainty = frame.scalar
    this.stamp = frame.stamp
    this.stale = frame.stale
    this.moved = { processor: true, graphics: true }
  }

  /** Colour the vertices by values of m, up to `top`; null: by nothing. */
  colour(values: Float32Array | null, top: number): void {
    const attribute = this.geometry.attributes.color as THREE.BufferAttribute
    const colours = attribute.array as Float32Array
    if (values) colourValues(values, top, colours)
    else colours.fill(PLAIN)
    attribute.needsUpdate = true
  }

  /** The first place with x up to `cut` that a ray meets, in the geometry's frame. */
  firstHit(ray: THREE.Ray, cut = Infinity): THREE.Intersection | null {
    if (!this.hasTriangles) return null
    const isLarge = this.topology.triangles.length >= 3 * MANY
    const caster = isLarge ? quickerCaster() : 'processor'
    const [counts, begun] = [isLarge && this.moved[caster], performance.now()]
    const hit = caster === 'graphics' ? this.metByGraphics([ray], cut)[0] : this.metByProcessor(ray, cut)
    if (counts) noteCast(caster, performance.now() - begun)
    return hit
  }

  private metByProcessor(ray: THREE.Ray, cut: number): THREE.Intersection | null {
    this.clusters ??= new Clusters(this.geometry)
    if (this.moved.processor) this.clusters.refresh()
    this.moved.processor = false
    return this.clusters.firstHit(ray, cut)
  }

  /** The same of several rays by the graphics card. */
  metByGraphics(rays: THREE.Ray[], cut = Infinity): (THREE.Intersection | null)[] {
    const { renderer } = graphics
    if (renderer && this.picker?.renderer !== renderer) {
      this.picker = new Picker(renderer, this.topology.triangles, this.topology.vertices)
      this.moved.graphics = true
    }
    if (this.moved.graphics) this.picker?.moveTo(this.positions)
    this.moved.graphics = false
    const met = this.picker?.met(rays, cut) ?? []
    return rays.map((ray, i) => {
      const place = met[i]
      if (!place) return null
      const point = this.at(place, this.positions, new THREE.Vector3())
      return { distance: point.distanceTo(ray.origin), faceIndex: place.triangle, point, object: NOWHERE }
    })
  }

  /** x of a share of the surface's width, m. */
  xAt(share: number): number {
    this.geometry.computeBoundingBox()
    const { min, max } = this.geometry.boundingBox!
    return min.x + share * (max.x - min.x)
  }

  /** Distance of each point (3 n) from the surface, m; NaN where a point is missing or there is no surface. */
  distances(points: Float32Array): Float32Array {
    const tree = this.hasTriangles ? new MeshBVH(this.geometry, { indirect: true }) : null
    const point = new THREE.Vector3()
    return Float32Array.from({ length: points.length / 3 }, (_, i) => {
      if (!tree || Number.isNaN(points[3 * i])) return Number.NaN
      return tree.closestPointToPoint(point.fromArray(points, 3 * i))?.distance ?? Number.NaN
    })
  }

  /** Output index and (u, v) of a point of a triangle. */
  whereOn(triangle: number, point: THREE.Vector3): { output: number; uv: Uv } {
    const [a, b, c] = this.cornersOf(triangle)
    const weights = THREE.Triangle.getBarycoord(point, a, b, c, new THREE.Vector3()) ?? new THREE.Vector3(1, 0, 0)
    const uv = uvAt(this.topology, { triangle, weights: weights.toArray() })
    return { output: this.topology.output[this.topology.triangles[3 * triangle]], uv }
  }

  /** Where the corners of a triangle are now. */
  cornersOf(triangle: number): THREE.Vector3[] {
    const corners = this.topology.triangles.subarray(3 * triangle, 3 * triangle + 3)
    return Array.from(corners, (corner) => new THREE.Vector3().fromArray(this.positions, 3 * corner))
  }

  /** Where (u, v) of an output is now; null where the mesh has no such output. */
  pointAt(output: number, uv: Uv, out: THREE.Vector3): THREE.Vector3 | null {
    return this.blend(this.positions, output, uv, out)
  }

  /** Unit normal at (u, v) of an output; null where the mesh has no such output. */
  normalAt(output: number, uv: Uv, out: THREE.Vector3): THREE.Vector3 | null {
    return this.blend(this.geometry.attributes.normal.array as Float32Array, output, uv, out)?.normalize() ?? null
  }

  private blend(values: Float32Array, output: number, uv: Uv, out: THREE.Vector3): THREE.Vector3 | null {
    const key = `${output} ${uv[0]} ${uv[1]}`
    let place = this.places.get(key)
    if (place === undefined) {
      if (this.places.size > 200) this.places.clear()
      place = placeOf(this.topology, output, uv)
      this.places.set(key, place)
    }
    return place && this.at(place, values, out)
  }

  private at({ triangle, weights }: Place, values: Float32Array, out: THREE.Vector3): THREE.Vector3 {
    const corners = this.topology.triangles.subarray(3 * triangle, 3 * triangle + 3)
    out.set(0, 0, 0)
    weights.forEach((weight, k) => out.addScaledVector(vertex.fromArray(values, 3 * corners[k]), weight))
    return out
  }

  dispose(): void {
    this.geometry.dispose()
    this.picker?.dispose()
  }
}

function dynamic(values: Float32Array): THREE.BufferAttribute {
  return new THREE.BufferAttribute(values, 3).setUsage(THREE.DynamicDrawUsage)
}

/** Distance of each vertex from its place at rest, m. */
export function deformation(positions: Float32Array, rest: Float32Array, out: Float32Array): Float32Array {
  for (let i = 0; i < out.length; i++) {
    const k = 3 * i
    out[i] = Math.hypot(positions[k] - rest[k], positions[k + 1] - rest[k + 1], positions[k + 2] - rest[k + 2])
  }
  return out
}
