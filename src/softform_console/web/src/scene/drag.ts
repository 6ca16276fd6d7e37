/** One way to pick, drag and slide for mouse, touch and controllers: each pointer has at most one thing in hand. */

import type { ThreeEvent } from '@react-three/fiber'
import * as THREE from 'three'
import { useMotion, type Stroke } from '../motion'
import { planPath } from '../planning'
import { addPin, beginGesture, changePin, mayOperate, removePin } from '../steering'
import { note, robotInfo, robotState, useStore, type Pin } from '../store'
import { pictureOf } from './picture'

/** What a pointer can have in hand, in the robot's frame, m. */
export interface Thing {
  place: [number, number, number]
  /** Of the surface there, if any. */
  normal?: THREE.Vector3 | null
  /** Take it elsewhere. */
  put(place: [number, number, number]): void
  /** It was let go of. */
  end?(): void
  /** Its point of the robot, which can be slid along the surface and removed. */
  pin?: number
}

interface Grab {
  thing: Thing
  /** Where the pointer took hold, and where the thing is now. */
  start: THREE.Vector3
  at: THREE.Vector3
  /** What a mouse or finger moves it in; a controller moves it freely. */
  plane: THREE.Plane | null
  /** Which hand holds it, of a controller, and how far that has pushed it along its ray. */
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

function normalOf({ output, u, v }: Pick<Pin, 'output' | 'u' | 'v'>): THREE.Vector3 | null {
  const store = useStore.getState()
  const index = robotInfo(store)?.outputs.findIndex((one) => one.name === output && one.kind !== 'frame') ?? -1
  return pictureOf(store.robot).surface?.normalAt(index, [u, v], new THREE.Vector3()) ?? null
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

/** Take a thing in hand. */
export function take(event: Pointer, thing: Thing): void {
  event.stopPropagation()
  ;(event.target as unknown as Element).setPointerCapture(event.pointerId)
  if (orbit) orbit.enabled = false
  const start = local(event.point)
  const sight = rayOf(event).direction
  const hand = event.pointerState?.inputSource?.handedness ?? null
  const plane = hand === null ? dragPlane(sight, thing.normal ?? null, start) : null
  const at = new THREE.Vector3(...thing.place)
  grabs.set(event.pointerId, { thing, start, at, plane, hand, pushed: new THREE.Vector3(), sight })
}

function takePin(event: Pointer, id: number): void {
  const pin = useStore.getState().pins.find((one) => one.id === id)
  if (pin)
    take(event, { place: pin.target, normal: normalOf(pin), put: (target) => changePin(id, { target }), pin: id })
}

/** Begin to draw the path of a point, if that was asked for; says whether it was. */
function drawPath(event: Pointer, point: Omit<Stroke, 'places'>, place: [number, number, number]): boolean {
  if (!useMotion.getState().drawing || !mayOperate()) return false
  const extend = (next: [number, number, number]) =>
    useMotion.setState(({ stroke }) => ({ stroke: { ...point, places: [...(stroke?.places ?? []), next] } }))
  useMotion.setState({ stroke: { ...point, places: [place] } })
  take(event, { place, normal: normalOf(point), put: extend, end: planPath })
  return true
}

/** Press on the surface: a point is born there. */
export function pickSurface(event: ThreeEvent<PointerEvent>): void {
  const store = useStore.getState()
  const surface = pictureOf(store.robot).surface
  if (event.button !== 0 || event.faceIndex == null || !surface) return
  beginGesture()
  const point = local(event.point)
  const { output, uv } = surface.whereOn(event.faceIndex, point)
  const picked = robotInfo(store)?.outputs[output]
  const frame = robotState(store)?.frames.find((one) => one.name === picked?.name)
  if (frame) {
    note(
      'info',
      `This skin shows the robot alone: its ${frame.name} is dragged. Launched with model:=fem its points are.`,
    )
    pickFrame(event, frame.name, frame.place)
  } else if (picked) pick(event, { output: picked.name, u: uv[0], v: uv[1] }, point.toArray())
}

/** Press on a frame of the robot. */
export function pickFrame(event: ThreeEvent<PointerEvent>, output: string, place: [number, number, number]): void {
  if (event.button !== 0) return
  beginGesture()
  pick(event, { output, u: 0, v: 0 }, place, useStore.getState().pins.find((pin) => pin.output === output)?.id)
}

function pick(event: Pointer, point: Omit<Stroke, 'places'>, place: [number, number, number], held?: number): void {
  if (drawPath(event, point, place)) return
  const id = held ?? addPin({ ...point, target: place })
  if (id === null) event.stopPropagation()
  else takePin(event, id)
}

/** Press on a target. */
export function pickTarget(event: ThreeEvent<PointerEvent>, id: number): void {
  if (event.button !== 0) return
  beginGesture()
  event.stopPropagation()
  useStore.setState({ selected: id })
  takePin(event, id)
}

/** Move what this pointer has in hand; with Shift a point slides along the surface. */
export function move(event: ThreeEvent<PointerEvent>): void {
  const grab = grabs.get(event.pointerId)
  if (!grab) return
  event.stopPropagation()
  if (event.shiftKey && grab.thing.pin !== undefined) {
    slide(event, grab.thing.pin)
    return
  }
  const ray = rayOf(event)
  grab.sight.copy(ray.direction)
  const point = grab.plane ? ray.intersectPlane(grab.plane, new THREE.Vector3()) : local(event.point)
  const size = robotInfo(useStore.getState())?.size ?? 1
  if (point && point.distanceTo(grab.start) < FURTHEST * size)
    put(
      grab,
      point
        .sub(grab.start)
        .add(grab.pushed)
        .add(new THREE.Vector3(...grab.thing.place)),
    )
}

function put(grab: Grab, place: THREE.Vector3): void {
  grab.at.copy(place)
  grab.thing.put(place.toArray())
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
    grab.pushed.add(step)
    put(grab, grab.at.clone().add(step))
  }
}

/** Remove what a hand holds. */
export function removeHeld(hand: XRHandedness): void {
  for (const [pointer, { hand: held, thing }] of grabs) {
    if (held !== hand || thing.pin === undefined) continue
    grabs.delete(pointer)
    removePin(thing.pin)
  }
}

/** Let go. */
export function drop(event: ThreeEvent<PointerEvent>): void {
  const grab = grabs.get(event.pointerId)
  if (!grab) return
  grabs.delete(event.pointerId)
  event.stopPropagation()
  grab.thing.end?.()
  if (orbit && grabs.size === 0) orbit.enabled = true
}

/** A second press on a target removes it. */
export function removeTarget(event: ThreeEvent<MouseEvent>, id: number): void {
  event.stopPropagation()
  removePin(id)
}

/** What everything that can be dragged listens to. */
export const DRAGGED = { onPointerMove: move, onPointerUp: drop, onPointerCancel: drop }
