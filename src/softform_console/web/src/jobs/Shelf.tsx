import type { Shelf } from '../protocol'
import { address, duration, size, startJob, useAnswer } from './answers'

/** Recordings below the folder of runs, to be downloaded or replayed. */
export function Recordings() {
  const shelf = useAnswer<Shelf>('shelf')
  if (!shelf) return <p className="muted">Looking for recordings …</p>
  if (shelf.recordings.length === 0) return <p className="muted">None yet. Record the stack: ./softform record</p>
  return (
    <div className="jobs">
      <ul>
        {shelf.recordings.map(({ path, recorded, seconds, messages, files }) => (
          <li key={path}>
            <b>{path}</b>{' '}
            <span className="muted">
              {new Date(1e3 * recorded).toLocaleString()},{' '}
              {seconds === null ? 'not closed: put it right with ./softform record --salvage' : duration(seconds)}
              {messages !== null && `, ${messages} messages`}
            </span>{' '}
            {files.map((file) => (
              <a key={file.path} href={address(file.path)} download>
                {file.path.slice(file.path.lastIndexOf('/') + 1)} ({size(file.size)})
              </a>
            ))}
            <button type="button" onClick={() => startJob('replay', [path])}>
              Replay
            </button>
          </li>
        ))}
      </ul>
      <p className="muted">Nothing is replayed beside a driver; start ./softform launch replay to see a recording.</p>
    </div>
  )
}

/** The robot's models with their cards. */
export function Models() {
  const shelf = useAnswer<Shelf>('shelf')
  if (!shelf) return <p className="muted">Looking for models …</p>
  return (
    <div className="jobs">
      <div>
        <p>{shelf.in_use}</p>
        <p className="muted">
          {shelf.to_switch.split('`').map((text, at) => (at % 2 ? <code key={at}>{text}</code> : text))}
        </p>
      </div>
      <div>
        {shelf.models.length === 0 && <p className="muted">None is trained: start the jobs simulate and train fk.</p>}
        {shelf.models.map(({ name, card }) => (
          <details key={name}>
            <summary>{name}</summary>
            <pre>{card}</pre>
          </details>
        ))}
      </div>
    </div>
  )
}
