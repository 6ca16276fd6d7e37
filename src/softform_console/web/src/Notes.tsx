import { Cross } from './panel/parts'
import { closeNote, useStore } from './store'

/** Messages, the newest last. */
export function Notes() {
  const notes = useStore((store) => store.notes)
  return (
    <div className="notes" role="log" aria-live="polite">
      {notes.map((one) => (
        <div key={one.key} className="note" data-level={one.level}>
          <p>{one.text}</p>
          <Cross label="Close this message" onClick={() => closeNote(one.key)} />
        </div>
      ))}
    </div>
  )
}
