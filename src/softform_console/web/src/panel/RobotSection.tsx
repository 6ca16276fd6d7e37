import { send } from '../control'
import { goHome } from '../planning'
import { clearFaults, mayOperate, release } from '../steering'
import { robotInfo, robotState, useStore } from '../store'
import { Choice, errorText, Fact } from './parts'

/** How the robot is: what it follows, how well, and what is wrong. */
export function RobotSection() {
  const robot = useStore(robotState)
  const scene = useStore((store) => store.scene)
  const holds = useStore((store) => robotInfo(store)?.holds)
  const roundTrip = useStore((store) => store.roundTrip)
  const watching = useStore((store) => store.state?.operator === 'other')
  if (!robot) return null
  const { driver, servo, steering } = robot
  return (
    <section className="section">
      <h2>Robot</h2>
      {driver.faults.length > 0 && !driver.stopped && (
        <div className="faults" role="alert">
          {driver.faults.map((fault) => (
            <p key={fault}>{fault}</p>
          ))}
          <button type="button" onClick={clearFaults} disabled={watching}>
            I have looked at it: clear
          </button>
        </div>
      )}
      {driver.warnings.map((warning) => (
        <p key={warning} className="warning">
          {warning}
        </p>
      ))}
      <dl className="facts">
        <Fact name="Follows" value={FOLLOWS[steering]} />
        {servo?.mean_error != null && steering === 'points' && (
          <Fact name="Off by" value={errorText(servo.mean_error, servo.max_error)} />
        )}
        {servo?.latency != null && steering === 'points' && (
          <Fact name="Answered within" value={`${(1e3 * servo.latency).toFixed(0)} ms`} />
        )}
        {scene.surface && (
          <Fact name="Picture" value={(holds ? OF_OBJECT : OF_ROBOT)[scene.stale ? 'stale' : 'present']} />
        )}
        {scene.missingMarkers > 0 && <Fact name="Markers not seen" value={String(scene.missingMarkers)} />}
        {roundTrip !== null && <Fact name="Connection" value={`${(1e3 * roundTrip).toFixed(0)} ms`} />}
      </dl>
      {robot.models.length > 1 && (
        <Choice
          label="Model"
          value={robot.model}
          options={['', ...robot.models]
            .filter((kind) => kind || !robot.model)
            .map((kind) => [kind, kind || 'nodes differ'])}
          onChange={(model) => mayOperate() && send({ type: 'use_model', robot: robot.robot, model })}
        />
      )}
      {servo?.reason && steering === 'points' && <p className="warning">{servo.reason}</p>}
      {!robot.past_known && !holds && (
        <p className="muted">
          What it did before is not known, and a body that remembers depends on it.{' '}
          <button
            type="button"
            onClick={goHome}
            disabled={watching || steering !== 'none'}
            title="Each alone, there and back"
          >
            Home
          </button>
        </p>
      )}
      {!holds && (driver.state === 'running' || driver.state === 'holding') && (
        <button type="button" onClick={release} disabled={watching} title="The driver makes the robot safe">
          Let go of the robot
        </button>
      )}
    </section>
  )
}

const OF_ROBOT = { stale: 'at rest, nothing is measured', present: 'as predicted now' }
const OF_OBJECT = { stale: 'as grasped: not looked at yet', present: 'as believed at the last look' }

const FOLLOWS = {
  none: 'nothing',
  points: 'the points',
  held: 'nothing: it holds',
  manual: 'the sliders',
  goal: 'a target or program',
}
