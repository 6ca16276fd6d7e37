import { useEffect, useState } from 'react'
import type { GoalProgress, GoalResult } from '../protocol'
import { millimetres, percent } from '../quantities'
import { send } from '../control'
import { readProgram } from '../programming'
import { clearPreview } from '../scene/picture'
import { mayOperate } from '../steering'
import { forgetTarget, robotInfo, robotState, setTarget, useStore, type Pose } from '../store'
import { Choice, Cross, errorText, Fact } from './parts'
import { previewTarget, UNITS, uploadTarget, type Unit } from '../upload'

type Mode = 'plan' | 'move' | 'verify' | 'closed_loop'

const POSES: [Pose, string][] = [
  ['fixed', 'as the file says'],
  ['free', 'wherever it fits best'],
  ['place', 'laid over the robot'],
]
const MODES: [Mode, string][] = [
  ['plan', 'Plan: solve, move nothing'],
  ['move', 'Move: bring the robot there'],
  ['verify', 'Move and verify: capture it there, measure the error'],
  ['closed_loop', 'Closed loop: correct by what is captured'],
]

/** A shape to be reached: dropped as a file, previewed, then reached. */
export function TargetSection() {
  const target = useStore((store) => store.target)
  const info = useStore(robotInfo)
  const [file, setFile] = useState<File | null>(null)
  useDrops(setFile)
  if (!info?.has_surface) return null
  return (
    <section className="section">
      <h2>Target shape</h2>
      {!target.uploaded && !file && (
        <label className="drop">
          <input
            type="file"
            accept=".ply,.obj,.stl,.pcd,.xyz"
            onChange={(event) => setFile(event.target.files?.[0] ?? null)}
          />
          Drop a mesh or point cloud anywhere, or choose a file
        </label>
      )}
      {file && !target.uploaded && <AskUnit file={file} busy={target.busy} onEnd={() => setFile(null)} />}
      {target.uploaded && <Reach onForget={() => forget(setFile)} />}
      {target.progress && <Progress progress={target.progress} />}
      {target.result && <Result result={target.result} />}
    </section>
  )
}

function useDrops(onFile: (file: File) => void): void {
  useEffect(() => {
    const over = (event: DragEvent) => event.preventDefault()
    const dropped = (event: DragEvent) => {
      event.preventDefault()
      const file = event.dataTransfer?.files[0]
      if (!file) return
      if (/\.ya?ml$/i.test(file.name)) return void file.text().then(readProgram)
      forgetTarget()
      onFile(file)
    }
    window.addEventListener('dragover', over)
    window.addEventListener('drop', dropped)
    return () => {
      window.removeEventListener('dragover', over)
      window.removeEventListener('drop', dropped)
    }
  }, [onFile])
}

function AskUnit({ file, busy, onEnd }: { file: File; busy: boolean; onEnd(): void }) {
  return (
    <div className="ask">
      <p>
        In which unit is <b>{file.name}</b>?
      </p>
      <div className="row">
        {UNITS.map((unit: Unit) => (
          <button key={unit} type="button" disabled={busy} onClick={() => void uploadTarget(file, unit)}>
            {unit}
          </button>
        ))}
        <button type="button" className="plain-button" onClick={onEnd}>
          Cancel
        </button>
      </div>
    </div>
  )
}

function Reach({ onForget }: { onForget(): void }) {
  const { uploaded, preview, pose, busy } = useStore((store) => store.target)
  const robot = useStore((store) => store.robot)
  const [mode, setMode] = useState<Mode>('move')
  const running = useStore((store) => robotState(store)?.steering === 'goal')
  if (!uploaded) return null
  const reach = () => {
    if (!mayOperate()) return
    setTarget({ result: null, progress: null, busy: true })
    send({ type: 'reach', robot, epoch: useStore.getState().gestureEpoch, target: uploaded.id, pose, mode })
  }
  return (
    <>
      <div className="pin-head">
        <span>
          <b>{uploaded.name}</b>{' '}
          <span className="muted">{uploaded.size.map((one) => (1e3 * one).toFixed(0)).join(' × ')} mm</span>
        </span>
        <Cross label="Forget the target" onClick={onForget} />
      </div>
      <Choice label="Pose" value={pose} options={POSES} onChange={choosePose} />
      <p className={preview && (preview.beside ?? 0) > 0.1 ? 'warning' : 'muted'}>
        {preview ? previewText(preview.beside, preview.text) : 'Laying it over the robot …'}
      </p>
      <Choice label="How" value={mode} options={MODES} onChange={setMode} />
      {running ? (
        <button type="button" onClick={() => send({ type: 'cancel', robot })}>
          Cancel
        </button>
      ) : (
        <button type="button" className="primary" disabled={busy || !preview} onClick={reach}>
          {mode === 'plan' ? 'Plan' : 'Reach it'}
        </button>
      )}
    </>
  )
}

function forget(setFile: (file: null) => void): void {
  setFile(null)
  forgetTarget()
  clearPreview(useStore.getState().robot)
}

function choosePose(pose: Pose): void {
  setTarget({ pose })
  previewTarget()
}

function previewText(beside: number | null, text: string): string {
  if (text || beside === null) return text
  return beside === 0 ? 'All of it lies over the robot.' : `${percent(beside)} of it lies beside the robot.`
}

function Progress({ progress }: { progress: GoalProgress }) {
  const round = progress.round ? `, round ${progress.round}` : ''
  return (
    <p role="status">
      {progress.stage}
      {round}: {millimetres(progress.mean_error)} off in the mean, {millimetres(progress.max_error)} at most
    </p>
  )
}

function Result({ result }: { result: GoalResult }) {
  return (
    <div role="status" className={result.error_code === 0 ? 'result' : 'warning'}>
      {result.text && <p>{result.text}</p>}
      <dl className="facts">
        <Fact name="Predicted error" value={errorText(result.mean_error, result.max_error)} />
        {result.measured_mean_error !== null && (
          <Fact name="Measured error" value={errorText(result.measured_mean_error, result.measured_max_error)} />
        )}
        <Fact name="Solved in" value={`${(1e3 * result.solve_time).toFixed(0)} ms, ${result.iterations} iterations`} />
      </dl>
    </div>
  )
}
