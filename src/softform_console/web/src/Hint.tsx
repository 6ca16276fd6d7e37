import { useMotion } from './motion'
import { clearFaults } from './steering'
import { robotInfo, robotState, useStore } from './store'

/** One sentence that says what to do now; gone as soon as it is done. */
export function Hint({ picture }: { picture: boolean }) {
  const drawing = useMotion((motion) => motion.drawing)
  const hint = useStore((store) => (drawing ? DRAW : hintOf(store)))
  const text = picture || !TEACHING.includes(hint ?? '') ? hint : 'Move a slider, or add a point by numbers.'
  const teaches = TEACHING.includes(text ?? '')
  if (!text) return null
  return (
    <p className="hint" data-teaches={teaches || undefined} role="status">
      {teaches && <span className="hand" aria-hidden="true" />}
      {text}
      {text === STOPPED && (
        <button type="button" className="primary" onClick={clearFaults}>
          Allow motion again
        </button>
      )}
    </p>
  )
}

const TEACH = 'Press a point of the robot and drag it.'
const TEACH_TIP = 'Press the tip of the robot and drag it.'
const TEACH_OBJECT = 'Press a point of the object and drag it.'
const TEACHING = [TEACH, TEACH_TIP, TEACH_OBJECT]

const DRAW = 'Press a point of the robot and draw its path.'
const STOPPED = 'Stopped by request.'
const OUT_OF_REACH = 'The robot holds: it cannot follow the points. Pull less far; the panel says why.'

function hintOf(store: ReturnType<typeof useStore.getState>): string | null {
  if (!store.connected)
    return store.everConnected ? 'The connection is lost; trying again …' : 'Connecting to the robot …'
  if (store.hello && !store.hello.robots.length) return 'No robot is described to this console: run ./softform launch.'
  const robot = robotState(store)
  if (!robot) return null
  const { state } = robot.driver
  if (state === 'fault' && robot.driver.stopped) return STOPPED
  if (state === 'fault') return 'The robot is at fault: look at it, then clear the fault in the panel.'
  if (state === 'offline' || state === 'silent') return 'The driver is not there: start it, or run ./softform status.'
  if (!store.scene.surface && !robot.frames.length) return 'Waiting for the predicted shape …'
  if (store.state?.operator === 'other') return 'You watch. Somebody else steers.'
  if (robot.steering === 'points' && robot.servo?.state === 'holding' && robot.servo.reason) return OUT_OF_REACH
  if (
    state === 'running' ||
    robot.steering === 'goal' ||
    robot.steering === 'manual' ||
    store.pins.length ||
    store.manual
  )
    return null
  if (robotInfo(store)?.holds) return TEACH_OBJECT
  return store.scene.surface ? TEACH : TEACH_TIP
}
