import { useEffect, useState } from 'react'
import { send } from '../control'
import { isUnderWay, useMotion, useObstacles } from '../motion'
import {
  addObstacle,
  changeObstacle,
  endMotion,
  keepPose,
  look,
  planMotion,
  removeObstacle,
  runMotion,
} from '../planning'
import type { MotionState, Obstacle } from '../protocol'
import { robotInfo, useStore } from '../store'
import { NumberField } from './NumberField'
import { Choice, Cross, Item, Lengths } from './parts'

/** Error of a path that is doubtful, in sizes of the robot. */
const DOUBTFUL = 0.02
/** What stands for a motion that is not to be run. */
const BAD: MotionState['stage'][] = ['failed', 'outdated']
const KINDS = ['ball', 'box'] as const

/** Obstacles and motions past them, paths that are drawn: planned, looked at in time, then run. */
export function MotionSection() {
  const motion = useMotion()
  const obstacles = useObstacles()
  const robot = useStore((store) => store.robot)
  const hasSurface = useStore((store) => robotInfo(store)?.has_surface)
  const size = useStore((store) => robotInfo(store)?.size ?? 0.3)
  const off = Math.max(0, ...(motion.motion?.errors ?? []))
  const busy = isUnderWay(motion)
  return (
    <section className="section" aria-label="Motion">
      <h2>Motion {motion.motion && !busy && <Cross label="Forget the motion" onClick={endMotion} />}</h2>
      <ol className="pins">
        {obstacles.map((obstacle, index) => (
          <Row key={index} obstacle={obstacle} index={index} chosen={motion.chosen === index} />
        ))}
      </ol>
      {hasSurface && (
        <div className="row" role="group" aria-label="Add an obstacle">
          <span className="muted">Obstacle</span>
          {KINDS.map((kind) => (
            <button key={kind} type="button" onClick={() => addObstacle(kind)}>
              {kind}
            </button>
          ))}
        </div>
      )}
      {obstacles.length > 0 && <PlanPast busy={busy} />}
      <DrawPath busy={busy} />
      {motion.state && (
        <p role="status" className={BAD.includes(motion.state.stage) || off > DOUBTFUL * size ? 'warning' : 'muted'}>
          {motion.state.text}
        </p>
      )}
      {busy && (
        <button type="button" onClick={() => send({ type: 'cancel', robot })}>
          Cancel
        </button>
      )}
      {motion.motion && !busy && hasSurface && <Look />}
      {motion.motion && !busy && (
        <button type="button" className="primary" onClick={runMotion} disabled={motion.state?.stage === 'outdated'}>
          Run it
        </button>
      )}
    </section>
  )
}

function Row({ obstacle: { kind, centre, edges }, index, chosen }: RowProps) {
  return (
    <Item
      number={index + 1}
      name={kind}
      about={`${edges.map((one) => (1e3 * one).toFixed(0)).join(' × ')} mm`}
      chosen={chosen}
      kind="obstacle"
      onChoose={() => useMotion.setState({ chosen: chosen ? null : index })}
      onRemove={() => removeObstacle(index)}
    >
      <Lengths
        labels={['x, mm', 'y, mm', 'z, mm']}
        value={centre}
        onChange={(to) => changeObstacle(index, { centre: to })}
      />
      <Lengths
        labels={['along x', 'along y', 'along z']}
        value={edges}
        least={1}
        onChange={(to) => changeObstacle(index, { edges: to })}
      />
    </Item>
  )
}

interface RowProps {
  obstacle: Obstacle
  index: number
  chosen: boolean
}

function PlanPast({ busy }: { busy: boolean }) {
  const kept = useMotion((motion) => motion.kept)
  const uploaded = useStore((store) => store.target.uploaded)
  const [wanted, setWanted] = useState<'target' | 'kept'>('kept')
  const [clearance, setClearance] = useState(2)
  const to = uploaded && (wanted === 'target' || !kept) ? 'target' : 'kept'
  const keptOption: ['kept', string] = ['kept', kept ? 'the pose that was kept' : 'a pose: keep one first']
  return (
    <>
      <Choice
        label="To"
        value={to}
        options={uploaded ? [['target', 'the target shape'], keptOption] : [keptOption]}
        onChange={setWanted}
      />
      <div className="row">
        <NumberField label="clear by, mm" value={clearance} least={0} most={1000} onChange={setClearance} />
        <button type="button" onClick={keepPose} title="Remember what is commanded now, to plan a motion to it">
          Keep this pose
        </button>
        <button
          type="button"
          className="primary"
          disabled={busy || (to === 'kept' && !kept)}
          onClick={() => planMotion(to, clearance / 1e3)}
        >
          Plan past them
        </button>
      </div>
    </>
  )
}

function DrawPath({ busy }: { busy: boolean }) {
  const { drawing, seconds } = useMotion()
  return (
    <div className="row">
      <button
        type="button"
        aria-pressed={drawing}
        disabled={busy}
        onClick={() => useMotion.setState({ drawing: !drawing })}
      >
        Draw a path
      </button>
      <NumberField
        label="in s"
        value={seconds}
        least={1}
        most={600}
        onChange={(value) => useMotion.setState({ seconds: value })}
      />
    </div>
  )
}

/** The motion in time, before it runs. */
function Look() {
  const { motion, time } = useMotion()
  useEffect(() => {
    if (useStore.getState().state?.operator === 'you') look(motion!.times.at(-1)!)
  }, [motion])
  const last = motion!.times.at(-1)!
  return (
    <label className="field wide">
      <span>{time === null ? 'not looked at' : `at ${time.toFixed(1)} s`}</span>
      <input
        type="range"
        min={0}
        max={last}
        step={last / 200}
        value={time ?? last}
        aria-label="Time of the motion that is looked at"
        onChange={(event) => look(Number(event.target.value))}
      />
    </label>
  )
}
