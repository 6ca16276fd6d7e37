import { expect, it } from 'vitest'
import * as THREE from 'three'
import { MeshBVH } from 'three-mesh-bvh'
import { Clusters } from '../src/scene/clusters'

const RAYS = 10_000

/** Numbers between -1 and 1, the same each time. */
function numbers(): () => number {
  let seed = 7
  return () => ((seed = (seed * 16807) % 2147483647) / 2147483647) * 2 - 1
}

/** Bend a tube along its y axis. */
function bend(tube: THREE.BufferGeometry, rest: Float32Array, angle: number): void {
  const at = tube.attributes.position.array as Float32Array
  for (let k = 0; k < rest.length; k += 3) {
    const turn = (angle * rest[k + 1]) / 0.9
    at[k] = rest[k] * Math.cos(turn) + 0.5 * Math.sin(turn)
    at[k + 1] = rest[k + 1] * Math.cos(turn)
    at[k + 2] = rest[k + 2] + 0.1 * Math.sin(3 * turn)
  }
}

it('meets what a tree that is made anew meets, on 10 000 rays at a mesh that bends', () => {
  const tube = new THREE.CylinderGeometry(0.06, 0.04, 0.9, 60, 60, true)
  const rest = (tube.attributes.position.array as Float32Array).slice()
  const clusters = new Clusters(tube)
  const next = numbers()
  let hits = 0
  let tree = new MeshBVH(tube, { indirect: true })
  for (let k = 0; k < RAYS; k++) {
    if (k % 500 === 0) {
      bend(tube, rest, 0.1 + k / RAYS)
      clusters.refresh()
      tree = new MeshBVH(tube, { indirect: true })
    }
    const corner = Math.floor(((next() + 1) / 2) * (rest.length / 3))
    const aim = new THREE.Vector3().fromArray(tube.attributes.position.array, 3 * corner)
    aim.add(new THREE.Vector3(next(), next(), next()).multiplyScalar(0.03))
    const origin = aim.clone().add(new THREE.Vector3(next(), next(), next()).normalize())
    const ray = new THREE.Ray(origin, aim.clone().sub(origin).normalize())
    const found = clusters.firstHit(ray, Infinity)
    const wanted = tree.raycastFirst(ray, THREE.DoubleSide)
    expect(found === null).toBe(wanted === null)
    if (!found || !wanted) continue
    hits++
    expect(Math.abs(found.distance - wanted.distance)).toBeLessThan(1e-9)
  }
  expect(hits).toBeGreaterThan(RAYS / 4)
  expect(hits).toBeLessThan(RAYS)
}, 120_000)

it('sees nothing beyond a cut, and what lies behind it', () => {
  const sheet = new THREE.PlaneGeometry(2, 2, 8, 8)
  const far = sheet.clone().translate(0, 0, -1)
  const clusters = new Clusters(sheet)
  clusters.refresh()
  const ray = new THREE.Ray(new THREE.Vector3(0.5, 0.1, 3), new THREE.Vector3(0, 0, -1))
  expect(clusters.firstHit(ray, Infinity)?.distance).toBeCloseTo(3, 9)
  expect(clusters.firstHit(ray, 0.4)).toBeNull()
  sheet.attributes.position.array.set(far.attributes.position.array)
  clusters.refresh()
  expect(clusters.firstHit(ray, Infinity)?.distance).toBeCloseTo(4, 9)
})
