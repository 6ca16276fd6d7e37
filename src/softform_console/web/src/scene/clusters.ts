import * as THREE from 'three'
import { CENTER, MeshBVH } from 'three-mesh-bvh'

/** Most triangles of a cluster: fewer make more boxes, more make more triangles to be met. */
const LARGEST = 48
/** By how much a ray may miss a box for rounding, m. */
const ROUNDING = 1e-9

/**
 * Triangles of a mesh in clusters that stay together while it moves. A ray is cast at the clusters' boxes, and at the
 * triangles of those that it meets: a tree of 100 000 triangles takes longer to be brought up to date than may pass.
 */
export class Clusters {
  private readonly triangles: Uint32Array
  /** Where the triangles, and the vertices, of each cluster begin in lists of all; each vertex is in it once. */
  private readonly starts: number[] = [0]
  private readonly vertexStarts: number[] = [0]
  private readonly vertices: Uint32Array
  private readonly boxes: Float32Array

  /** Clusters of what is near in the geometry as it is now. */
  constructor(private readonly geometry: THREE.BufferGeometry) {
    const tree = new MeshBVH(geometry, { strategy: CENTER, indirect: true, targetLeafSize: LARGEST })
    const index = geometry.index!.array
    const triangles: number[] = []
    const vertices: number[] = []
    tree.traverse((_depth, isLeaf, _box, offset, count) => {
      if (!isLeaf) return
      const own = new Set<number>()
      for (let i = offset; i < offset + count; i++) {
        const triangle = tree.resolveTriangleIndex(i)
        triangles.push(triangle)
        for (let k = 0; k < 3; k++) own.add(index[3 * triangle + k])
      }
      vertices.push(...own)
      this.starts.push(triangles.length)
      this.vertexStarts.push(vertices.length)
    })
    this.triangles = Uint32Array.from(triangles)
    this.vertices = Uint32Array.from(vertices)
    this.boxes = new Float32Array(6 * (this.starts.length - 1))
  }

  /** Bring the boxes up to date with the geometry. */
  refresh(): void {
    const { boxes, vertices, vertexStarts } = this
    const at = this.geometry.attributes.position.array
    for (let cluster = 0; cluster + 1 < vertexStarts.length; cluster++) {
      let [x0, y0, z0, x1, y1, z1] = [Infinity, Infinity, Infinity, -Infinity, -Infinity, -Infinity]
      for (let i = vertexStarts[cluster]; i < vertexStarts[cluster + 1]; i++) {
        const k = 3 * vertices[i]
        const [x, y, z] = [at[k], at[k + 1], at[k + 2]]
        if (x < x0) x0 = x
        if (x > x1) x1 = x
        if (y < y0) y0 = y
        if (y > y1) y1 = y
        if (z < z0) z0 = z
        if (z > z1) z1 = z
      }
      boxes.set([x0, y0, z0, x1, y1, z1], 6 * cluster)
    }
  }

  /** The first place with x up to `cut` that a ray meets, in the geometry's frame; null: none. */
  firstHit({ origin, direction }: THREE.Ray, cut: number): THREE.Intersection | null {
    const ray = new THREE.Ray(origin, direction)
    const met: [number, number][] = []
    for (let cluster = 0; cluster + 1 < this.starts.length; cluster++) {
      const distance = this.entry(ray, cluster)
      if (distance !== Infinity) met.push([distance, cluster])
    }
    met.sort((a, b) => a[0] - b[0])
    let nearest = Infinity
    let faceIndex = -1
    const hit = new THREE.Vector3()
    for (const [distance, cluster] of met) {
      if (distance > nearest) break
      for (let i = this.starts[cluster]; i < this.starts[cluster + 1]; i++) {
        const corners = this.cornersOf(this.triangles[i])
        if (!ray.intersectTriangle(...corners, false, hit) || hit.x > cut) continue
        const away = hit.distanceTo(origin)
        if (away < nearest) [nearest, faceIndex] = [away, this.triangles[i]]
      }
    }
    if (faceIndex < 0) return null
    return { distance: nearest, faceIndex, point: ray.at(nearest, new THREE.Vector3()), object: NOWHERE }
  }

  private cornersOf(triangle: number): [THREE.Vector3, THREE.Vector3, THREE.Vector3] {
    const { index, attributes } = this.geometry
    corners.forEach((corner, k) => corner.fromArray(attributes.position.array, 3 * index!.array[3 * triangle + k]))
    return corners
  }

  /** How far along a ray (of unit direction) the box of a cluster begins; infinite where it is not met. */
  private entry({ origin, direction }: THREE.Ray, cluster: number): number {
    let near = 0
    let far = Infinity
    for (let k = 0; k < 3; k++) {
      const from = origin.getComponent(k)
      const way = direction.getComponent(k)
      const low = this.boxes[6 * cluster + k] - from
      const high = this.boxes[6 * cluster + 3 + k] - from
      if (way === 0 && (low > 0 || high < 0)) return Infinity
      if (way === 0) continue
      near = Math.max(near, Math.min(low / way, high / way))
      far = Math.min(far, Math.max(low / way, high / way))
    }
    return near <= far + ROUNDING ? near : Infinity
  }
}

const corners: [THREE.Vector3, THREE.Vector3, THREE.Vector3] = [
  new THREE.Vector3(),
  new THREE.Vector3(),
  new THREE.Vector3(),
]
const NOWHERE = new THREE.Object3D()
