import { useFrame, useThree } from '@react-three/fiber'
import { useEffect } from 'react'
import * as THREE from 'three'
import { MeshBVH } from 'three-mesh-bvh'
import { robotInfo, robotState, useStore } from '../store'
import { graphics } from './picker'
import { pictureOf } from './picture'

/** What tests read of the picture: where things are on the screen, px, and when it was drawn first, ms. */
export interface PictureProbe {
  firstPicture: number | null
  draws: number
  /** Draw now, so that what is on the canvas can be read. */
  draw(): void
  /** Screen place of a point of the robot's frame, m. */
  screen(point: [number, number, number]): [number, number]
  /** Place in the robot's frame of (u, v) of an output, m, of the shape that is shown now, or is foreseen. */
  place(output: string, u: number, v: number, foreseen?: boolean): [number, number, number] | null
  /** Whether the graphics card casts the rays at large meshes from now on, though the processor may draw. */
  pickByGraphics(on: boolean): void
  /** What rays (6 numbers each) meet by the graphics card, and by a tree that is made anew. */
  picks(rays: number[][]): Record<'graphics' | 'tree', (Pick | null)[]>
}

/** Triangle, its corners, and the place that is met, in the robot's frame, m. */
interface Pick {
  triangle: number
  corners: number[][]
  point: number[]
}

declare global {
  interface Window {
    softformPicture?: PictureProbe
  }
}

/** Puts `window.softformPicture` in place. */
export function Probe() {
  const { camera, gl, scene } = useThree()
  useEffect(() => {
    const probe: PictureProbe = {
      firstPicture: null,
      draws: 0,
      draw: () => gl.render(scene, camera),
      screen: ([x, y, z]) => {
        const at = new THREE.Vector3(x, z, -y).project(camera)
        const box = gl.domElement.getBoundingClientRect()
        return [box.left + ((at.x + 1) / 2) * box.width, box.top + ((1 - at.y) / 2) * box.height]
      },
      place: (output, u, v, foreseen = false) => {
        const store = useStore.getState()
        const index = robotInfo(store)?.outputs.findIndex((one) => one.name === output) ?? -1
        const shape = pictureOf(store.robot)[foreseen ? 'foreseen' : 'surface']
        return shape?.pointAt(index, [u, v], new THREE.Vector3())?.toArray() ?? null
      },
      pickByGraphics: (on) => void Object.assign(graphics, { renderer: on ? gl : null, always: on }),
      picks: (given) => {
        const { surface } = pictureOf(useStore.getState().robot)
        if (!surface) return { graphics: [], tree: [] }
        const rays = given.map(
          (ray) => new THREE.Ray(new THREE.Vector3(...ray.slice(0, 3)), new THREE.Vector3(...ray.slice(3))),
        )
        const tree = new MeshBVH(surface.geometry, { indirect: true })
        const told = (hit: THREE.Intersection | null): Pick | null =>
          hit && {
            triangle: hit.faceIndex!,
            corners: surface.cornersOf(hit.faceIndex!).map((corner) => corner.toArray()),
            point: hit.point.toArray(),
          }
        const before = graphics.renderer
        graphics.renderer = gl
        const met = surface.metByGraphics(rays)
        graphics.renderer = before
        return { graphics: met.map(told), tree: rays.map((ray) => told(tree.raycastFirst(ray, THREE.DoubleSide))) }
      },
    }
    window.softformPicture = probe
    return () => void delete window.softformPicture
  }, [camera, gl, scene])
  useFrame(() => {
    const probe = window.softformPicture
    if (!probe) return
    probe.draws += 1
    const store = useStore.getState()
    const something = pictureOf(store.robot).surface ?? robotState(store)?.frames.length
    if (probe.firstPicture === null && something) {
      requestAnimationFrame(() => requestAnimationFrame(() => (probe.firstPicture ??= performance.now())))
    }
  })
  return null
}
