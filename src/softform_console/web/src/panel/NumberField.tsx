import { useState } from 'react'

interface Props {
  label: string
  value: number
  least?: number
  most?: number
  step?: number
  disabled?: boolean
  onChange(value: number): void
}

/** A number that is taken over as it is written, if it is one and within its limits. */
export function NumberField({ label, value, least = -1e5, most = 1e5, step = 1, disabled, onChange }: Props) {
  const [written, setWritten] = useState<string | null>(null)
  const take = (text: string) => {
    setWritten(text)
    const number = Number(text)
    if (text.trim() !== '' && number >= least && number <= most) onChange(number)
  }
  const wrong = written !== null && !(written.trim() !== '' && Number(written) >= least && Number(written) <= most)
  return (
    <label className="field">
      <span>{label}</span>
      <input
        type="number"
        step={step}
        min={least}
        max={most}
        disabled={disabled}
        aria-invalid={wrong}
        value={written ?? String(Number(value.toFixed(2)))}
        onChange={(event) => take(event.target.value)}
        onBlur={() => setWritten(null)}
      />
    </label>
  )
}
