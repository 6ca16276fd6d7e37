import * as THREE from 'three'
import { CENTER, MeshBVH } from 'three-mesh-bvh'

/** Most triangles of a cluster: fewer make more boxes, more make more triangles to be met. */
const LARGEST = 48

interface Cluster {
  triangles: Uint32Array
  /** Its vertices, each once. */
  vertices: Uint32Array
  box: THREE.Box3
}

/**
 * Triangles of a mesh in clusters that stay together while it moves. A ray is cast at the clusters' boxes, and at the
 * triangles of those that it meets: a tree of 100 000 triangles takes longer to be brought up to date than may pass.
 */
export class Clusters {
  private readonly clusters: Cluster[] = []

  /** Clusters of what is near in the geometry as it is now. */
  constructor(private readonly geometry: THREE.BufferGeometry) {
    const tree = new MeshBVH(geometry, { strategy: CENTER, indirect: true, targetLeafSize: LARGEST })
    tree.traverse((_depth, isLeaf, _box, offset, count) => {
      if (!isLeaf) return
      const triangles = Uint32Array.from({ length: count }, (_, i) => tree.resolveTriangleIndex(offset + i))
      const vertices = Uint32Array.from(new Set([...triangles].flatMap((triangle) => this.cornersOf(triangle))))
      this.clusters.push({ triangles, vertices, box: new THREE.Box3() })
    })
    this.refresh()
  }

  private cornersOf(triangle: number): number[] {
    const { array } = this.geometry.index!
    return [array[3 * triangle], array[3 * triangle + 1], array[3 * triangle + 2]]
  }

  /** Bring the boxes up to date with the geometry. */
  refresh(): void {
    const places = this.geometry.attributes.position.array
    for (const { vertices, box } of this.clusters) {
      box.makeEmpty()
      for (let i = 0; i < vertices.length; i++) box.expandByPoint(scratch.fromArray(places, 3 * vertices[i]))
    }
  }

  /** The first place with x up to `cut` that a ray meets, in the geometry's frame; null: none. */
  firstHit(ray: THREE.Ray, cut: number): THREE.Intersection | null {
    const places = this.geometry.attributes.position.array
    const met: { triangles: Uint32Array; from: number }[] = []
    for (const { box, triangles } of this.clusters) {
      const from = entry(ray, box)
      if (from !== Infinity) met.push({ triangles, from })
    }
    met.sort((a, b) => a.from - b.from)
    let first: THREE.Intersection | null = null
    for (const { triangles, from } of met) {
      if (first && from > first.distance) break
      for (const faceIndex of triangles) {
        const [a, b, c] = this.cornersOf(faceIndex).map((corner, k) => corners[k].fromArray(places, 3 * corner))
        if (!ray.intersectTriangle(a, b, c, false, scratch) || scratch.x > cut) continue
        const distance = scratch.distanceTo(ray.origin)
        if (!first || distance < first.distance)
          first = { distance, faceIndex, point: scratch.clone(), object: NOWHERE }
      }
    }
    return first
  }
}

/** How far along a ray a box begins; infinite where it is not met. */
function entry(ray: THREE.Ray, box: THREE.Box3): number {
  if (box.containsPoint(ray.origin)) return 0
  return ray.intersectBox(box, scratch)?.distanceTo(ray.origin) ?? Infinity
}

const scratch = new THREE.Vector3()
const corners = [new THREE.Vector3(), new THREE.Vector3(), new THREE.Vector3()]
/** For intersections with a mesh whose object in the scene is not known here. */
export const NOWHERE = new THREE.Object3D()
