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

/** What the colours mean; a distance is that of the scan from the predicted surface. Of an object its stress is the uncertainty. */
export type Colouring = 'deformation' | 'uncertainty' | 'distance' | 'plain'

/** What the scene shows beside the robot. */
const LAYERS = ['surface', 'cloud', 'markers', 'target', 'contact', 'frames', 'grid'] as const
export type Layer = (typeof LAYERS)[number]

/** How an uploaded target is posed over the robot. */
export type Pose = 'fixed' | 'free' | 'place'

export interface Note extends Omit<Notice, 'type'> {
  key: number
}

/** No target. */
export const NO_TARGET = {
  uploaded: null as Uploaded | null,
  pose: 'fixed' as Pose,
  preview: null as Previewed | null,
  busy: false,
  progress: null as GoalProgress | null,
  result: null as GoalResult | null,
}
export type Target = typeof NO_TARGET

const BEGIN = {
  connected: false,
  everConnected: false,
  hello: null as Hello | null,
  state: null as State | null,
  /** When this page asked to be the operator, ms. */
  claimed: -Infinity,
  /** Epoch of the driver that the operator saw when they took hold; empty if the robot was stopped since. */
  gestureEpoch: '',
  /** Round trip of the newest beat, s. */
  roundTrip: null as number | null,
  stopped: null as Stopped | null,
  /** Index of the robot that is looked at. */
  robot: 0,
  pins: [] as Pin[],
  selected: null as number | null,
  optimise: true,
  /** Values of the sliders, SI; null unless this page moves actuators by hand. */
  manual: null as number[] | null,
  target: NO_TARGET,
  notes: [] as Note[],
  layers: Object.fromEntries(LAYERS.map((layer) => [layer, true])) as Record<Layer, boolean>,
  colouring: 'deformation' as Colouring,
  /** Where the surface is cut, as a share of the robot's width from its low x; 1: nowhere. */
  section: 1,
  /** End of the colour scale, m; 0 where nothing is scaled. */
  scaleTop: 0,
  /** Whether a surface is there, its values carry an uncertainty, and its rest shape is known. */
  scene: { surface: false, uncertainty: false, rest: false, stale: false, cloud: false, missingMarkers: 0 },
}

/** What is known of the world, what this page asks for, and how it is shown. */
export type Store = typeof BEGIN

export const useStore = create<Store>(() => BEGIN)

/** Description of the robot that is looked at. */
export function robotInfo(store: Store): RobotInfo | null {
  return store.hello?.robots.find((robot) => robot.index === store.robot) ?? null
}

/** State of the robot that is looked at. */
export function robotState(store: Store): RobotState | null {
  return store.state?.robots.find((robot) => robot.robot === store.robot) ?? null
}

/** Values of the actuators as this page moves them, else as they are commanded, else measured; null: not known. */
export function valuesNow(store: Store): number[] | null {
  const robot = robotState(store)
  return store.manual ?? robot?.commanded ?? robot?.measured ?? null
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
