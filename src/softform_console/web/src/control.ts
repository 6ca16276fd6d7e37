import { takeMotion, useMotion } from './motion'
import { programEnded, takeProgram } from './program'
import {
  BEAT_SECONDS,
  VERSION,
  type FromServer,
  type GoalProgress,
  type GoalResult,
  type Previewed,
  type RobotState,
  type State,
  type ToServer,
} from './protocol'
import { takeHello } from './robots'
import { takeShaping, useShaping } from './shaping'
import { ReconnectingSocket } from './socket'
import { note, robotState, setTarget, useStore } from './store'

/** Silence after which an open socket is given up, ms. */
const PATIENCE = 3000
/** How long it takes at most to become the operator, also of a computer that is slow, ms. */
const CLAIM = 3000

let heard = 0
const socket = new ReconnectingSocket('control', {
  message: (data) => {
    heard = performance.now()
    take(JSON.parse(String(data)) as FromServer)
  },
  close: () => {
    programEnded()
    useMotion.setState({ state: null })
    useShaping.setState({ state: null })
    useStore.setState({ connected: false, state: null, pins: [], selected: null, manual: null, stopped: null })
  },
})

/** A message as the page makes it: what is to be no older than the state that its user sees is stamped when it is sent. */
type Unstamped<M> = M extends { stamp: number } ? Omit<M, 'stamp'> : M

/** Send a message, with the stamp of the newest state where it wants one; false where there is no connection. */
export function send(message: Unstamped<ToServer>): boolean {
  const stamp = useStore.getState().state?.stamp ?? 0
  const isStamped = 'epoch' in message || message.type === 'answer_job'
  return socket.send(JSON.stringify(isStamped ? { ...message, stamp } : message))
}

/** Connect, and beat from this thread: a page that stands still is to end the motion that it steers. */
export function startControl(): void {
  socket.connect()
  setInterval(() => {
    const now = performance.now()
    if (useStore.getState().connected && now - heard > PATIENCE) socket.drop()
    send({ type: 'beat', t: now })
  }, 1e3 * BEAT_SECONDS)
}

function take(message: FromServer): void {
  switch (message.type) {
    case 'hello':
      if (message.version !== VERSION) note('error', 'This page is older or newer than its server: reload it.')
      takeHello(message)
      return
    case 'robots':
      return useStore.setState(({ hello }) => ({ hello: hello && { ...hello, robots: message.robots } }))
    case 'beat':
      return useStore.setState({ roundTrip: (performance.now() - message.t) / 1e3 })
    case 'state':
      return takeState(message)
    case 'stopped':
      return useStore.setState({ stopped: message })
    case 'notice':
      if (message.about === 'preview' || message.about === 'reach') setTarget({ busy: false })
      if (message.about === 'program') programEnded()
      return note(message.level, message.text, message.about)
    case 'motion':
    case 'motion_state':
      return takeMotion(message)
    case 'object_previewed':
    case 'shaping':
      return takeShaping(message)
    case 'program_read':
    case 'program_state':
      return takeProgram(message)
    case 'previewed':
    case 'goal':
    case 'goal_result':
      if (message.robot === useStore.getState().robot) takeTarget(message)
  }
}

/** Take what the server says of the target of the robot that is looked at. */
function takeTarget(message: Previewed | GoalProgress | GoalResult): void {
  if (message.type === 'previewed') setTarget({ preview: message, busy: false })
  else if (message.type === 'goal') setTarget({ progress: message, busy: true })
  else setTarget({ result: message, progress: null, busy: false })
}

/** What the server follows no more the page does not show as if it did: after a stop points and sliders are gone. */
function takeState(state: State): void {
  const before = useStore.getState()
  // A state that was under way while this page asked to be the operator does not know of it yet.
  const isClaimed = state.operator === 'none' && performance.now() - before.claimed < CLAIM
  if (isClaimed) state.operator = 'you'
  const was = robotState(before)
  const now = state.robots.find((robot) => robot.robot === before.robot)
  const moving = state.robots.some((robot) => robot.driver.state === 'running')
  useStore.setState({
    state,
    ...(!isClaimed && { claimed: -Infinity }),
    ...(hasEnded(was, now, FOLLOWING) && { pins: [], selected: null }),
    ...(hasEnded(was, now, ['manual']) && { manual: null }),
    ...(hasEnded(was, now, MOVING) && { gestureEpoch: '' }),
    ...(state.operator !== 'you' && { pins: [], selected: null, manual: null }),
    ...(before.stopped?.stage === 'confirmed' && moving && { stopped: null }),
  })
}

const FOLLOWING: RobotState['steering'][] = ['points', 'held']
const MOVING: RobotState['steering'][] = ['points', 'held', 'manual', 'goal']

function hasEnded(was: RobotState | null, now: RobotState | undefined, steering: RobotState['steering'][]): boolean {
  if (!was || !now) return false
  const failed = now.driver.state === 'fault' && was.driver.state !== 'fault'
  return failed || (steering.includes(was.steering) && !steering.includes(now.steering))
}
