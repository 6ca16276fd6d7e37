import { send } from '../control'
import { useProgram } from '../program'
import { addBlock, pointsBlock, readProgram, runProgram, valuesBlock } from '../programming'
import { saveBlob } from '../screenshot'
import { useStore } from '../store'
import { Cross } from './parts'

/** A program: its blocks, what they do now, and its text. */
export function ProgramSection() {
  const { text, read, running, ended } = useProgram()
  const robot = useStore((store) => store.robot)
  return (
    <section className="section" aria-label="Program">
      <h2>
        Program {read?.title && <span className="muted">{read.title}</span>}
        {text && !running && <Cross label="Forget the program" onClick={() => readProgram('')} />}
      </h2>
      {!text && (
        <label className="drop">
          <input
            type="file"
            accept=".yaml,.yml"
            onChange={(event) => void event.target.files?.[0]?.text().then(readProgram)}
          />
          Drop a program (.yaml), choose one, or add blocks
        </label>
      )}
      <Blocks />
      {read?.fault && <p className="warning">{read.fault}</p>}
      {ended && (
        <p role="status" className={ended.ended === 'done' ? 'muted' : 'warning'}>
          {ended.text}
        </p>
      )}
      {running ? (
        <button type="button" onClick={() => send({ type: 'cancel', robot })}>
          End the program
        </button>
      ) : (
        <>
          {text && (
            <div className="row">
              <button type="button" className="primary" disabled={!read || !!read.fault} onClick={runProgram}>
                Run
              </button>
              <button type="button" onClick={() => saveBlob(new Blob([text]), 'yaml')}>
                Save
              </button>
            </div>
          )}
          <Adders />
        </>
      )}
      {text && (
        <details>
          <summary>As text</summary>
          <textarea
            key={text}
            aria-label="The program as text"
            rows={10}
            spellCheck={false}
            readOnly={running}
            defaultValue={text}
            onBlur={(event) => event.target.value !== text && readProgram(event.target.value)}
          />
        </details>
      )}
    </section>
  )
}

function Blocks() {
  const { read, said, row, running } = useProgram()
  if (!read?.rows.length) return null
  return (
    <ol className="blocks">
      {read.rows.map((block, at) => (
        <li
          key={block.number}
          style={{ marginLeft: 14 * block.depth }}
          aria-current={running && at === row ? 'step' : undefined}
          title={`line ${block.line}`}
        >
          <b>{block.number}</b> {block.title} <span className="muted">{said[at]}</span>
        </li>
      ))}
    </ol>
  )
}

/** Buttons that add what the robot is asked for now, or what is to be done then. */
function Adders() {
  const points = useStore((store) => store.pins.length > 0)
  const adders: [string, () => string | null, boolean][] = [
    ['points', pointsBlock, points],
    ['values', valuesBlock, true],
    ['wait', () => 'wait: 1', true],
    ['verify', () => 'verify', true],
  ]
  return (
    <div className="row" role="group" aria-label="Add a block">
      <span className="muted">Add</span>
      {adders.map(([name, block, known]) => (
        <button key={name} type="button" disabled={!known} onClick={() => add(block())}>
          {name}
        </button>
      ))}
    </div>
  )
}

function add(block: string | null): void {
  if (block) addBlock(block)
}
