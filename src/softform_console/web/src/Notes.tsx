import { useEffect } from 'react'
import { closeNote, useStore } from './store'

/** How long an information stays, ms; warnings and errors stay until they are closed. */
const SHORT = 6000

/** Messages, the newest last. */
export function Notes() {
  const notes = useStore((store) => store.notes)
  return (
    <div className="notes" role="log" aria-live="polite">
      {notes.map((one) => (
        <div key={one.key} className="note" data-level={one.level}>
          <p>{one.text}</p>
          <button
            type="button"
            className="plain-button"
            aria-label="Close this message"
            onClick={() => closeNote(one.key)}
          >
            ✕
          </button>
          {one.level === 'info' && <Timer id={one.key} />}
        </div>
      ))}
    </div>
  )
}

function Timer({ id }: { id: number }) {
  useEffect(() => {
    const timer = setTimeout(() => closeNote(id), SHORT)
    return () => clearTimeout(timer)
  }, [id])
  return null
}
