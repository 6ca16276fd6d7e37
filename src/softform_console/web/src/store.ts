import { create } from 'zustand'
import type {
  GoalProgress,
  GoalResult,
  Hello,
  Notice,
  Point,
  Previewed,
  RobotInfo,
  RobotState,
  State,
  Stopped,
  Uploaded,
} from './protocol'

/** A point with all that it may have. */
export type Pin = Required<Point>

/** What the colours mean; a distance is that of the scan from the predicted surface. */
export type Colouring = 'deformation' | 'uncertainty' | 'distance' | 'plain'

/** What the scene shows beside the robot. */
export type Layer = 'surface' | 'cloud' | 'markers' | 'target' | 'frames' | 'grid'

/** How an uploaded target is posed over the robot. */
export type Pose = 'fixed' | 'free' | 'place'

export interface Note extends Omit<Notice, 'type'> {
  key: number
}

export interface Target {
  uploaded: Uploaded | null
  pose: Pose
  preview: Previewed | null
  busy: boolean
  progress: GoalProgress | null
  result: GoalResult | null
}

/** What is known of the world, what this page asks for, and how it is shown. */
export interface Store {
  connected: boolean
  everConnected: boolean
  hello: Hello | null
  state: State | null
  /** When this page asked to be the operator, ms. */
  claimed: number
  /** Epoch of the driver that the operator saw when they took hold; empty if the robot was stopped since. */
  gestureEpoch: string
  /** Round trip of the newest beat, s. */
  roundTrip: number | null
  stopped: Stopped | null
  /** Index of the robot that is looked at. */
  robot: number
  pins: Pin[]
  selected: number | null
  optimise: boolean
  /** Values of the sliders, SI; null unless this page moves actuators by hand. */
  manual: number[] | null
  target: Target
  notes: Note[]
  layers: Record<Layer, boolean>
  colouring: Colouring
  /** Where the surface is cut, as a share of the robot's width from its low x; 1: nowhere. */
  section: number
  /** End of the colour scale, m; 0 where nothing is scaled. */
  scaleTop: number
  /** Whether a surface is there, its values carry an uncertainty, and its rest shape is known. */
  scene: {
    surface: boolean
    uncertainty: boolean
    rest: boolean
    stale: boolean
    cloud: boolean
    missingMarkers: number
  }
}

const NO_TARGET: Target = { uploaded: null, pose: 'fixed', preview: null, busy: false, progress: null, result: null }

export const useStore = create<Store>(() => ({
  connected: false,
  everConnected: false,
  hello: null,
  state: null,
  claimed: -Infinity,
  gestureEpoch: '',
  roundTrip: null,
  stopped: null,
  robot: 0,
  pins: [],
  selected: null,
  optimise: true,
  manual: null,
  target: NO_TARGET,
  notes: [],
  layers: { surface: true, cloud: true, markers: true, target: true, frames: true, grid: true },
  colouring: 'deformation',
  section: 1,
  scaleTop: 0,
  scene: { surface: false, uncertainty: false, rest: false, stale: false, cloud: false, missingMarkers: 0 },
}))

/** Description of the robot that is looked at. */
export function robotInfo(store: Store): RobotInfo | null {
  return store.hello?.robots.find((robot) => robot.index === store.robot) ?? null
}

/** State of the robot that is looked at. */
export function robotState(store: Store): RobotState | null {
  return store.state?.robots.find((robot) => robot.robot === store.robot) ?? null
}

/** Points that are shown: the operator's own, and for those who watch the ones in force. */
export function shownPins(store: Store): Pin[] {
  if (store.state?.operator === 'you') return store.pins
  return (robotState(store)?.points ?? NO_PINS) as Pin[]
}
const NO_PINS: Pin[] = []

let notes = 0
const MOST_NOTES = 4
/** How long an information stays, ms; warnings and errors stay until they are closed. */
const SHORT = 6000

/** Show a message until it is closed; one that says the same takes the place of the one before. */
export function note(level: Notice['level'], text: string, about = ''): void {
  const key = ++notes
  useStore.setState(({ notes: before }) => ({
    notes: [...before.filter((one) => one.text !== text), { key, level, text, about }].slice(-MOST_NOTES),
  }))
  if (level === 'info') setTimeout(() => closeNote(key), SHORT)
}

/** Close a message. */
export function closeNote(key: number): void {
  useStore.setState(({ notes: before }) => ({ notes: before.filter((one) => one.key !== key) }))
}

/** Change what is known of the target. */
export function setTarget(change: Partial<Target>): void {
  useStore.setState(({ target }) => ({ target: { ...target, ...change } }))
}

/** Forget the target. */
export function forgetTarget(): void {
  useStore.setState({ target: NO_TARGET })
}
