import { useThree } from '@react-three/fiber'
import { useEffect } from 'react'
import * as THREE from 'three'
import { OrbitControls } from 'three/addons/controls/OrbitControls.js'
import { robotInfo, robotState, useStore } from '../store'
import { connectDrags } from './drag'
import { boundsOf, onPicture, pictureOf } from './picture'

export type Side = 'oblique' | 'top' | 'front' | 'side'

/** Where the robot is looked at from, in the world: y is up. */
const SIDES: Record<Side, [number, number, number]> = {
  oblique: [0.55, 0.62, 0.9],
  top: [0, 1, 0.001],
  front: [0, 0.12, 1],
  side: [1, 0.12, 0],
}

/** What buttons and keys do to the view; set while the scene is shown. */
export const view: { look(side: Side): void; turn(right: number, up: number): void; zoom(factor: number): void } = {
  look: () => undefined,
  turn: () => undefined,
  zoom: () => undefined,
}

/** Orbits the robot by mouse, touch and keys, and shows all of it at first. */
export function View() {
  const { camera, gl, invalidate } = useThree()
  const robot = useStore((store) => store.robot)
  const known = useStore((store) => robotInfo(store) !== null && robotState(store) !== null)
  useEffect(() => {
    const controls = new OrbitControls(camera, gl.domElement)
    controls.enableDamping = false
    controls.addEventListener('change', () => invalidate())
    connectDrags(controls, null)
    const around = (change: (offset: THREE.Spherical) => void) => {
      const offset = new THREE.Spherical().setFromVector3(camera.position.clone().sub(controls.target))
      change(offset)
      offset.makeSafe()
      camera.position.copy(controls.target).add(new THREE.Vector3().setFromSpherical(offset))
      controls.update()
    }
    view.look = (side) => fit(camera as THREE.PerspectiveCamera, controls, side)
    view.turn = (right, up) => around((offset) => void ((offset.theta += right), (offset.phi -= up)))
    view.zoom = (factor) => around((offset) => void (offset.radius *= factor))
    return () => controls.dispose()
  }, [camera, gl, invalidate])
  useEffect(() => {
    if (!known) return
    view.look('oblique')
    if (pictureOf(robot).surface) return
    const end = onPicture(() => {
      if (!pictureOf(robot).surface) return
      end()
      view.look('oblique')
    })
    return () => void end()
  }, [robot, known])
  return null
}

function fit(camera: THREE.PerspectiveCamera, controls: OrbitControls, side: Side): void {
  const { centre, radius } = bounds()
  const half = (camera.fov * Math.PI) / 360
  const distance = (0.98 * radius) / Math.sin(Math.min(half, Math.atan(Math.tan(half) * camera.aspect)))
  camera.near = radius / 50
  camera.far = 60 * radius
  camera.position
    .set(...SIDES[side])
    .normalize()
    .multiplyScalar(distance)
    .add(centre)
  camera.updateProjectionMatrix()
  controls.target.copy(centre)
  controls.minDistance = radius / 5
  controls.maxDistance = 12 * radius
  controls.update()
}

/** Sphere round the robot in the world, whose y is the robot's z. */
function bounds(): { centre: THREE.Vector3; radius: number } {
  const store = useStore.getState()
  const info = robotInfo(store)
  const size = info?.size ?? 0.3
  const box = boundsOf(store)
  const centre = box.getCenter(new THREE.Vector3())
  const clear = info?.has_surface ? 0 : 0.25 * size // of the hint, which lies over the upper part of the picture
  return {
    centre: new THREE.Vector3(centre.x, centre.z + clear, -centre.y),
    radius: Math.max(
      0.5 * box.getSize(new THREE.Vector3()).length(),
      0.9 * size * Number(!info?.has_surface), // what stands upright bends to all sides
      0.2 * size,
    ),
  }
}
