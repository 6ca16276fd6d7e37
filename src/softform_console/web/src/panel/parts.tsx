import { millimetres } from '../quantities'

/** One of a few, by name. */
export function Choice<T extends string>(props: {
  label: string
  value: T
  options: readonly (readonly [T, string])[]
  onChange(value: T): void
}) {
  return (
    <label className="field wide">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.target.value as T)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A cross that takes something away. */
export function Cross({ label, ...more }: { label: string; disabled?: boolean; onClick(): void }) {
  return (
    <button type="button" className="plain-button" aria-label={label} {...more}>
      ✕
    </button>
  )
}

/** What is known, in a list of class `facts`. */
export function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

/** An error in words. */
export function errorText(mean: number | null, max: number | null): string {
  return `${millimetres(mean)}, largest ${millimetres(max)}`
}
