/** SI at the page's border; what people read is made here. */

const SHOWN: Record<string, { unit: string; factor: number; digits: number }> = {
  Pa: { unit: 'kPa', factor: 1e-3, digits: 2 },
  m: { unit: 'mm', factor: 1e3, digits: 1 },
  rad: { unit: '°', factor: 180 / Math.PI, digits: 1 },
}

/** A value in an SI unit as people read it, with its unit; an en dash where it is not known. */
export function shown(value: number | null | undefined, unit: string): string {
  const { unit: name, factor, digits } = SHOWN[unit] ?? { unit, factor: 1, digits: 3 }
  return value == null || Number.isNaN(value) ? `– ${name}` : `${(value * factor).toFixed(digits)} ${name}`
}

/** Factor from an SI unit to the one that people read, and its name. */
export function display(unit: string): { unit: string; factor: number; digits: number } {
  return SHOWN[unit] ?? { unit, factor: 1, digits: 3 }
}

/** A length of m in mm with as many digits as an operator can use. */
export function millimetres(metres: number | null | undefined): string {
  if (metres == null || Number.isNaN(metres)) return '–'
  const value = metres * 1e3
  return `${value.toFixed(Math.abs(value) < 10 ? 2 : 1)} mm`
}

/** A share of 0 to 1 in per cent. */
export function percent(share: number): string {
  return `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`
}
