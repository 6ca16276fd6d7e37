/** What the operator does to the robot; whoever begins is made the operator where nobody is. */

import { send } from './control'
import { pacer } from './pace'
import { showRobot } from './robots'
import { posesOf, useShaping } from './shaping'
import { note, robotInfo, robotState, useStore, valuesNow, type Pin } from './store'

/** Least time between two sets of points or values, ms. */
const paced = pacer(20)

/** Note that the operator takes hold of something; what they do then counts until the robot is stopped. */
export function beginGesture(): void {
  useStore.setState((store) => ({ gestureEpoch: robotState(store)?.driver.epoch ?? '' }))
}

/** Take each press of a key or pointer for the begin of a gesture; a key that repeats is none. */
export function startGestures(): void {
  window.addEventListener('pointerdown', beginGesture, { capture: true })
  window.addEventListener('keydown', (event) => event.repeat || beginGesture(), { capture: true })
}

/** Whether the robot was stopped, at fault or reset since the operator took hold. */
function isOver(): boolean {
  return useStore.getState().gestureEpoch === ''
}

/** Whether this page may steer; takes the operator's place where it is free, and says why not where it is not. */
export function mayOperate(): boolean {
  const { state, connected } = useStore.getState()
  if (!connected || !state) {
    note('warning', 'There is no connection to the robot yet.')
    return false
  }
  if (state.operator === 'other') {
    note('info', 'Somebody else steers; you watch, and can stop. Ask them to hand over.', 'operate')
    return false
  }
  if (state.operator === 'none') {
    send({ type: 'operate', take: true })
    useStore.setState({ state: { ...state, operator: 'you' }, claimed: performance.now() })
  }
  return true
}

/** Cease to be the operator. */
export function handOver(): void {
  useStore.setState({ claimed: -Infinity })
  send({ type: 'operate', take: false })
}

function sendPins(): void {
  const store = useStore.getState()
  const { robot, gestureEpoch, pins, optimise } = store
  if (robotInfo(store)?.holds) previewObject()
  else if (gestureEpoch) send({ type: 'points', robot, epoch: gestureEpoch, points: pins, optimise })
}

/** Show the target that points and poses make; nothing moves. */
function previewObject(): void {
  const { robot, pins } = useStore.getState()
  useShaping.setState({ led: pins.length > 0 })
  send({ type: 'preview_object', robot, poses: useShaping.getState().base, points: pins })
}

/** Set a number of the grippers' poses in the target; what points had made of the others is kept, and they go. */
export function setPoses(poses: number[]): void {
  if (!mayOperate()) return
  useShaping.setState({ base: poses, drawn: true, led: false })
  useStore.setState({ pins: [], selected: null })
  paced(previewObject)
}

/** Have the object brought into the target that is shown. */
export function shapeObject(): void {
  const { preview, looks, limit } = useShaping.getState()
  const { robot, gestureEpoch: epoch } = useStore.getState()
  if (!preview || !epoch || !mayOperate()) return
  useShaping.setState({ state: null })
  send({ type: 'shape_object', robot, epoch, preview: preview.id, iterations: looks, stress_limit: limit })
}

function setPins(pins: Pin[], selected: number | null): void {
  const isFirst = !useStore.getState().pins.length
  useShaping.setState((shaping) => ({ drawn: true, ...(isFirst && { base: posesOf(shaping) }) }))
  useStore.setState({ pins, selected, manual: null })
  paced(sendPins)
}

/** Add a point that is wanted where it is pulled to; return its id, or null where this page may not steer. */
export function addPin(pin: Omit<Pin, 'id' | 'weight'>): number | null {
  if (!mayOperate()) return null
  const store = useStore.getState()
  const driver = robotState(store)?.driver
  if (driver?.state === 'fault' && !robotInfo(store)?.holds) {
    note(
      'warning',
      driver.stopped
        ? 'The robot is stopped. Allow motion again first.'
        : 'The robot is at fault and does not follow. Look at it, then clear the fault in the panel.',
    )
    return null
  }
  const { pins } = useStore.getState()
  const id = 1 + Math.max(0, ...pins.map((one) => one.id))
  setPins([...pins, { ...pin, id, weight: 1 }], id)
  return id
}

/** Change a point: its target, its place on the surface, or its weight. */
export function changePin(id: number, change: Partial<Pin>): void {
  const { pins } = useStore.getState()
  if (isOver() || !pins.some((pin) => pin.id === id) || !mayOperate()) return
  setPins(
    pins.map((pin) => (pin.id === id ? { ...pin, ...change } : pin)),
    id,
  )
}

/** Remove a point; with the last one the robot holds. */
export function removePin(id: number): void {
  if (!mayOperate()) return
  const { pins, selected } = useStore.getState()
  setPins(
    pins.filter((pin) => pin.id !== id),
    selected === id ? null : selected,
  )
}

/** Follow the points, or hold the robot while they are arranged. */
export function setOptimise(optimise: boolean): void {
  if (!mayOperate()) return
  useStore.setState({ optimise })
  paced(sendPins)
}

/** Move one actuator by hand; the others stay at what is commanded, else measured. Values are kept within limits. */
export function setActuator(index: number, value: number): void {
  if (isOver() || !mayOperate()) return
  const store = useStore.getState()
  const actuators = robotInfo(store)?.actuators ?? []
  const now = valuesNow(store) ?? actuators.map((one) => one.safe)
  const manual = now.map((held, k) =>
    Math.min(actuators[k].high, Math.max(actuators[k].low, k === index ? value : held)),
  )
  useStore.setState({ manual, pins: [], selected: null })
  paced(() => send({ type: 'actuators', robot: store.robot, epoch: store.gestureEpoch, values: manual }))
}

/** Let go of the robot: the driver makes it safe. */
export function release(): void {
  paced.forget()
  send({ type: 'release', robot: useStore.getState().robot })
}

/** Clear the faults that are shown. */
export function clearFaults(): void {
  if (!mayOperate()) return
  const store = useStore.getState()
  const seen = robotState(store)?.driver.epoch
  if (seen !== undefined) send({ type: 'reset', robot: store.robot, epoch: seen })
}

/** Look at another robot; one that is steered from here is let go of first, so that nothing moves unseen. */
export function lookAtRobot(robot: number): void {
  const store = useStore.getState()
  if (store.state?.operator === 'you' && robotState(store)?.steering !== 'none') {
    note('info', 'You steer this robot: let go of it before you look at another one.')
    return
  }
  showRobot(robot)
}
