/** One way to pick, drag and slide for mouse, touch and controllers: each pointer has at most one point in hand. */

import type { ThreeEvent } from '@react-three/fiber'
import * as THREE from 'three'
import { robotInfo, useStore, type Pin } from '../store'
import { addPin, beginGesture, changePin, removePin } from '../steering'
import { pictureOf } from './picture'

interface Grab {
  id: number
  /** Where the pointer took hold, and the target then, in the robot's frame, m. */
  start: THREE.Vector3
  from: THREE.Vector3
  /** What a mouse or finger moves it in; a controller moves it freely. */
  plane: THREE.Plane | null
  /** Which hand holds it, of a controller, and how far that has pushed it along its ray, in the robot's frame. */
  hand: XRHandedness | null
  pushed: THREE.Vector3
  sight: THREE.Vector3
}

/** Least angle between sight and normal for which a drag moves along the normal: sine of 25°. */
const LEAST_SINE = 0.42
/** Longest drag, in sizes of the robot: near the horizon a pixel is a mile. */
const FURTHEST = 4

/** What pointer-events gives beyond a DOM event. */
type Pointer = ThreeEvent<PointerEvent> & {
  pointerState?: { inputSource?: XRInputSource }
  details?: { type: string; direction?: THREE.Vector3 }
  pointerPosition?: THREE.Vector3
}

const grabs = new Map<number, Grab>()
let orbit: { enabled: boolean } | null = null
let space: THREE.Object3D | null = null

/** Tell which controls turn the view, so that they rest during a drag, and which object is the robot's frame. */
export function connectDrags(controls: { enabled: boolean } | null, robotFrame: THREE.Object3D | null): void {
  orbit = controls ?? orbit
  space = robotFrame ?? space
}

/** Let go of everything: what comes from a pointer that is still down counts no more. */
export function endDrags(): void {
  grabs.clear()
  if (orbit) orbit.enabled = true
}

function local(point: THREE.Vector3): THREE.Vector3 {
  return space ? space.worldToLocal(point.clone()) : point.clone()
}

/** Ray of a pointer, in the robot's frame; `ray` of the library is right for controllers only. */
function rayOf(event: Pointer): THREE.Ray {
  const { details, pointerPosition } = event
  const isOnScreen = details?.direction && pointerPosition && details.type === 'screen-ray'
  const ray = isOnScreen ? new THREE.Ray(pointerPosition, details.direction).clone() : event.ray.clone()
  return space ? ray.applyMatrix4(space.matrixWorld.clone().invert()) : ray
}

function normalOf(pin: Pin): THREE.Vector3 | null {
  const store = useStore.getState()
  const output = robotInfo(store)?.outputs.findIndex((one) => one.name === pin.output) ?? -1
  return pictureOf(store.robot).surface?.normalAt(output, [pin.u, pin.v], new THREE.Vector3()) ?? null
}

/**
 * The plane that a drag on the screen moves in: it has the surface's normal in it and else faces the eye, so that what
 * is pulled up goes where soft robots go; without a normal, or where one looks along it, it faces the eye.
 */
export function dragPlane(sight: THREE.Vector3, normal: THREE.Vector3 | null, point: THREE.Vector3): THREE.Plane {
  const facing = sight.clone()
  if (normal) facing.addScaledVector(normal, -sight.dot(normal))
  const across = facing.length() < LEAST_SINE ? sight : facing
  return new THREE.Plane().setFromNormalAndCoplanarPoint(across.clone().normalize(), point)
}

function take(event: Pointer, id: number): void {
  const pin = useStore.getState().pins.find((one) => one.id === id)
  if (!pin) return
  event.stopPropagation()
  ;(event.target as unknown as Element).setPointerCapture(event.pointerId)
  if (orbit) orbit.enabled = false
  const start = local(event.point)
  const sight = rayOf(event).direction
  const hand = event.pointerState?.inputSource?.handedness ?? null
  const plane = hand === null ? dragPlane(sight, normalOf(pin), start) : null
  grabs.set(event.pointerId, {
    id,
    start,
    from: new THREE.Vector3(...pin.target),
    plane,
    hand,
    pushed: new THREE.Vector3(),
    sight,
  })
}

/** Press on the surface: a point is born there. */
export function pickSurface(event: ThreeEvent<PointerEvent>): void {
  const store = useStore.getState()
  const surface = pictureOf(store.robot).surface
  if (event.button !== 0 || event.faceIndex == null || !surface) return
  beginGesture()
  const point = local(event.point)
  const { output, uv } = surface.whereOn(event.faceIndex, point)
  const name = robotInfo(store)?.outputs[output]?.name
  if (name === undefined) return
  const id = addPin({ output: name, u: uv[0], v: uv[1], target: point.toArray() })
  if (id === null) event.stopPropagation()
  else take(event, id)
}

/** Press on a frame of the robot. */
export function pickFrame(event: ThreeEvent<PointerEvent>, output: string, place: [number, number, number]): void {
  if (event.button !== 0) return
  beginGesture()
  const held = useStore.getState().pins.find((pin) => pin.output === output)
  const id = held?.id ?? addPin({ output, u: 0, v: 0, target: place })
  if (id === null) event.stopPropagation()
  else take(event, id)
}

/** Press on a target. */
export function pickTarget(event: ThreeEvent<PointerEvent>, id: number): void {
  if (event.button !== 0) return
  beginGesture()
  event.stopPropagation()
  useStore.setState({ selected: id })
  take(event, id)
}

/** Move what this pointer has in hand; with Shift it slides along the surface. */
export function move(event: ThreeEvent<PointerEvent>): void {
  const grab = grabs.get(event.pointerId)
  if (!grab) return
  event.stopPropagation()
  if (event.shiftKey) {
    slide(event, grab.id)
    return
  }
  const ray = rayOf(event)
  grab.sight.copy(ray.direction)
  const point = grab.plane ? ray.intersectPlane(grab.plane, new THREE.Vector3()) : local(event.point)
  const size = robotInfo(useStore.getState())?.size ?? 1
  if (point && point.distanceTo(grab.start) < FURTHEST * size)
    changePin(grab.id, { target: grab.from.clone().add(point).sub(grab.start).add(grab.pushed).toArray() })
}

function slide(event: Pointer, id: number): void {
  const store = useStore.getState()
  const surface = pictureOf(store.robot).surface
  const hit = surface?.firstHit(rayOf(event))
  if (!surface || hit?.faceIndex == null) return
  const { output, uv } = surface.whereOn(hit.faceIndex, hit.point)
  const name = robotInfo(store)?.outputs[output]?.name
  if (name !== undefined) changePin(id, { output: name, u: uv[0], v: uv[1], target: hit.point.toArray() })
}

/** Push what a hand holds along its ray by so many m; a negative length pulls. */
export function reel(hand: XRHandedness, length: number): void {
  for (const grab of grabs.values()) {
    if (grab.hand !== hand) continue
    const step = grab.sight.clone().multiplyScalar(length)
    const pin = useStore.getState().pins.find((one) => one.id === grab.id)
    grab.pushed.add(step)
    if (pin) changePin(grab.id, { target: new THREE.Vector3(...pin.target).add(step).toArray() })
  }
}

/** Remove what a hand holds. */
export function removeHeld(hand: XRHandedness): void {
  for (const [pointer, grab] of grabs) {
    if (grab.hand !== hand) continue
    grabs.delete(pointer)
    removePin(grab.id)
  }
}

/** Let go. */
export function drop(event: ThreeEvent<PointerEvent>): void {
  if (!grabs.delete(event.pointerId)) return
  event.stopPropagation()
  if (orbit && grabs.size === 0) orbit.enabled = true
}

/** A second press on a target removes it. */
export function removeTarget(event: ThreeEvent<MouseEvent>, id: number): void {
  event.stopPropagation()
  removePin(id)
}
