/** What has come on the scene's socket, by robot; the scene draws it and is told of each change. */

import { useSyncExternalStore } from 'react'
import * as THREE from 'three'
import { niceTop, steadyTop } from '../colours'
import { decodeFrame, lastSeen, type Kind, type SceneFrame, type Topology } from '../frames'
import { ReconnectingSocket } from '../socket'
import { note, robotInfo, robotState, useStore, type Store } from '../store'
import { deformation, Surface } from './surface'

/** Shortest colour scale of a deformation, of the robot's size, and of an uncertainty, m: what is smaller is noise. */
const LEAST_SHARE = 0.015
const LEAST_UNCERTAINTY = 1e-4
/** The same of a stress, Pa. */
const LEAST_STRESS = 1e3

/** What is shown of one robot; empty as long as nothing came. */
const nothing = () => ({
  surface: null as Surface | null,
  /** Shape that a motion is predicted to have at the time that is looked at. */
  foreseen: null as Surface | null,
  /** The shape at rest, by topology. */
  rest: new Map<number, Float32Array>(),
  cloud: null as SceneFrame | null,
  /** Distance of the cloud's points from the surface as it was when they came, m; null where it is not asked for. */
  cloudDistances: null as Float32Array | null,
  markers: null as SceneFrame | null,
  /** Where each marker was seen last (3 n), m; NaN where it never was. */
  markersSeen: new Float32Array(0) as Float32Array,
  target: null as SceneFrame | null,
  preview: null as SceneFrame | null,
})
export type Picture = ReturnType<typeof nothing>

const topologies = new Map<string, Topology>()
const pictures = new Map<number, Picture>()
const listeners = new Set<() => void>()

/** The picture of a robot. */
export function pictureOf(robot: number): Picture {
  if (!pictures.has(robot)) pictures.set(robot, nothing())
  return pictures.get(robot)!
}

/** Be told when a picture has changed; returns what ends it. */
export function onPicture(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Box round the robot that is looked at, in its frame, m. */
export function boundsOf(store: Store): THREE.Box3 {
  const { surface } = pictureOf(store.robot)
  const box = new THREE.Box3()
  if (surface) box.setFromArray(surface.positions)
  for (const frame of robotState(store)?.frames ?? []) box.expandByPoint(new THREE.Vector3(...frame.place))
  return surface?.hasTriangles ? box : box.expandByPoint(new THREE.Vector3())
}

/** A part of a robot's picture, for components. */
export function usePicture<Part extends keyof Picture>(robot: number, part: Part): Picture[Part] {
  return useSyncExternalStore(onPicture, () => pictureOf(robot)[part])
}

const socket = new ReconnectingSocket('scene', {
  message: (data) => {
    let frame: SceneFrame
    try {
      frame = decodeFrame(data as ArrayBuffer)
    } catch (error) {
      note('error', (error as Error).message, 'scene')
      return
    }
    take(frame)
    socket.send(new Uint32Array([frame.seq]).buffer)
    for (const listener of listeners) listener()
  },
})

/** Connect to the scene. */
export function startScene(): void {
  socket.connect()
  useStore.subscribe((now, before) => {
    if (now.colouring !== before.colouring || now.robot !== before.robot) recolour(now)
  })
}

function take(frame: SceneFrame): void {
  const picture = pictureOf(frame.robot)
  const key = `${frame.robot} ${frame.topologyId}`
  if (frame.kind === 'topology' && frame.topology) topologies.set(key, frame.topology)
  if (frame.kind === 'mesh') {
    const topology = topologies.get(key)
    if (topology) takeMesh(picture, topology, frame)
  }
  if (frame.kind === 'gone' && frame.gone === 'mesh') picture[frame.preview ? 'foreseen' : 'surface'] = null
  const slot = slotOf(frame.kind === 'gone' ? frame.gone : frame.kind, frame.preview)
  if (slot) picture[slot] = frame.kind === 'gone' ? null : frame
  if (slot === 'markers') picture.markersSeen = lastSeen(picture.markersSeen, frame.positions)
  if (slot === 'cloud') paint(picture, useStore.getState(), true)
  if (frame.robot === useStore.getState().robot) describe(picture)
}

/** Take a preview off the picture. */
export function clearPreview(robot: number): void {
  pictureOf(robot).preview = null
  for (const listener of listeners) listener()
}

function slotOf(kind: Kind, preview: boolean): 'cloud' | 'markers' | 'target' | 'preview' | null {
  if (kind === 'target') return preview ? 'preview' : 'target'
  return kind === 'cloud' || kind === 'markers' ? kind : null
}

function takeMesh(picture: Picture, topology: Topology, frame: SceneFrame): void {
  const shown = frame.preview ? 'foreseen' : 'surface'
  if (picture[shown]?.topology !== topology) {
    picture[shown]?.dispose()
    picture[shown] = new Surface(topology)
  }
  picture[shown].apply(frame)
  if (frame.preview) return
  if (frame.stale) picture.rest.set(topology.id, frame.positions.slice())
  if (frame.robot === useStore.getState().robot) paint(picture, useStore.getState())
}

function recolour(store: Store): void {
  paint(pictureOf(store.robot), store, true)
  describe(pictureOf(store.robot))
  for (const listener of listeners) listener()
}

/** Colour surface or cloud; the cloud's distances are those of the moment at which it is new. */
function paint(picture: Picture, store: Store, cloudIsNew = false): void {
  const { surface, rest, cloud } = picture
  if (!surface) return
  const { colouring, scaleTop } = store
  if (colouring !== 'distance') picture.cloudDistances = null
  else if (cloudIsNew) picture.cloudDistances = cloud && surface.distances(cloud.positions)
  const info = robotInfo(store)
  const leastValue = info?.holds && colouring === 'uncertainty' ? LEAST_STRESS : LEAST_UNCERTAINTY
  const least = colouring === 'deformation' ? niceTop(LEAST_SHARE * (info?.size ?? 0.1)) : leastValue
  const values = valuesToColour(surface, rest, colouring)
  const scaled = values ?? picture.cloudDistances
  const top = scaled
    ? steadyTop(
        scaleTop,
        scaled.reduce((a, b) => (b > a ? b : a), 0),
        least,
      )
    : 0
  surface.colour(values, top)
  if (top !== scaleTop) useStore.setState({ scaleTop: top })
}

let distances = new Float32Array(0)
function valuesToColour(surface: Surface, rest: Picture['rest'], colouring: Store['colouring']): Float32Array | null {
  if (colouring === 'uncertainty') return surface.uncertainty
  const still = rest.get(surface.topology.id)
  if (colouring !== 'deformation' || !still) return null
  if (distances.length !== surface.topology.vertices) distances = new Float32Array(surface.topology.vertices)
  return deformation(surface.positions, still, distances)
}

/** Tell the panel what there is to see, when that changes. */
function describe({ surface, rest, cloud, markers }: Picture): void {
  const scene = {
    surface: surface?.hasTriangles ?? false,
    uncertainty: Boolean(surface?.uncertainty),
    rest: surface !== null && rest.has(surface.topology.id),
    stale: surface?.stale ?? true,
    cloud: cloud !== null,
    missingMarkers: markers ? markers.positions.filter((value, i) => i % 3 === 0 && Number.isNaN(value)).length : 0,
  }
  const before = useStore.getState().scene
  if ((Object.keys(scene) as (keyof typeof scene)[]).some((key) => scene[key] !== before[key]))
    useStore.setState({ scene })
}
