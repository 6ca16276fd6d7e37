import { send } from '../control'
import type { ObjectPreviewed, Shaping } from '../protocol'
import { millimetres, shown } from '../quantities'
import { posesOf, useShaping } from '../shaping'
import { setPoses, shapeObject } from '../steering'
import { robotInfo, robotState, useStore } from '../store'
import { ActuatorRow } from './Actuators'
import { NumberField } from './NumberField'
import { Fact } from './parts'

const SIDES = ['left', 'right']
const NUMBERS = ['x', 'y', 'z', 'turn x', 'turn y', 'turn z']
/** How far a slider goes, in sizes of the object, and rad. */
const SHIFT = 0.5
const TURN = 1.5

/** Target of an object that arms hold: poses of the grippers by sliders, what the model makes of it, and how it goes. */
export function ObjectSection() {
  const size = useStore((store) => robotInfo(store)?.size ?? 0.2)
  const running = useStore((store) => robotState(store)?.steering === 'goal')
  const watching = useStore((store) => store.state?.operator === 'other')
  const robot = useStore((store) => store.robot)
  const { preview, state, looks, limit } = useShaping()
  const poses = useShaping(posesOf)
  return (
    <section className="section" aria-label="Target">
      <h2>
        Target <span className="muted">points lead the grippers, or sliders set them</span>
      </h2>
      {SIDES.map((side, gripper) => (
        <details key={side} aria-label={`The ${side} gripper`}>
          <summary>The {side} gripper</summary>
          <div className="actuators">
            {NUMBERS.map((name, k) => {
              const [unit, high] = k < 3 ? ['m', SHIFT * size] : ['rad', TURN]
              const at = 6 * gripper + k
              return (
                <ActuatorRow
                  key={name}
                  actuator={{ name, unit, low: -high, high, safe: 0, slew: 0 }}
                  value={poses[at]}
                  measured={poses[at]}
                  blocked={watching || running}
                  onChange={(value) => setPoses(poses.with(at, value))}
                />
              )
            })}
          </div>
        </details>
      ))}
      {preview && <Preview preview={preview} limit={limit || preview.stress_limit} />}
      <div className="row">
        <NumberField
          label="looks (0: usual)"
          value={looks}
          least={0}
          most={1000}
          onChange={(value) => useShaping.setState({ looks: Math.round(value) })}
        />
        <NumberField
          label="stress, kPa (0: usual)"
          value={limit / 1e3}
          least={0}
          most={1e9}
          onChange={(value) => useShaping.setState({ limit: 1e3 * value })}
        />
      </div>
      <div className="row">
        {running ? (
          <button type="button" onClick={() => send({ type: 'cancel', robot })}>
            Cancel
          </button>
        ) : (
          <button type="button" className="primary" disabled={!preview || watching} onClick={shapeObject}>
            Shape it
          </button>
        )}
        <button type="button" disabled={watching || running} onClick={() => setPoses(poses.map(() => 0))}>
          Back to the grasp
        </button>
      </div>
      {state && <Progress state={state} />}
    </section>
  )
}

function Preview({ preview: { off, stress }, limit }: { preview: ObjectPreviewed; limit: number | null }) {
  return (
    <dl className={limit && stress > limit ? 'facts warning' : 'facts'}>
      {off !== null && <Fact name="Points stay off by" value={millimetres(off)} />}
      <Fact name="Stress there" value={shown(stress, 'Pa') + (limit ? ` of ${shown(limit, 'Pa')} allowed` : '')} />
    </dl>
  )
}

function Progress({ state }: { state: Shaping }) {
  return (
    <div role="status" className={state.stage === 'failed' ? 'warning' : 'result'}>
      <p>{state.text || `${state.stage}, look ${state.look}`}</p>
      <dl className="facts">
        <Fact name="Off, as believed" value={millimetres(state.reported_rms)} />
        {state.true_rms !== null && <Fact name="Off, in truth" value={millimetres(state.true_rms)} />}
        {state.true_max !== null && <Fact name="Largest, in truth" value={millimetres(state.true_max)} />}
        <Fact name="Stress" value={shown(state.stress, 'Pa')} />
      </dl>
    </div>
  )
}
