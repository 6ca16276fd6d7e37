/** Cividis: perceptually uniform, and read alike with and without colour blindness. */
const CIVIDIS = [
  '00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78',
  '8c8878 9b9476 aba072 bcae6c cdbb63 dec958 f0d846 fee838',
].flatMap((row) => row.split(' ').map((hex) => `#${hex}`))

/** The map as a CSS gradient from left (0) to right (1). */
export const SCALE_GRADIENT = `linear-gradient(to right, ${CIVIDIS.join(', ')})`

/** 256 colours of the map in linear RGB, as vertex colours are taken. */
export const LINEAR_COLOURS = linearColours()

function linearColours(): Float32Array {
  const out = new Float32Array(3 * 256)
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (CIVIDIS.length - 1)
    const below = Math.min(Math.floor(at), CIVIDIS.length - 2)
    const a = channels(CIVIDIS[below])
    const b = channels(CIVIDIS[below + 1])
    for (let k = 0; k < 3; k++) out[3 * i + k] = linear(a[k] + (at - below) * (b[k] - a[k]))
  }
  return out
}

function channels(hex: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
}

function linear(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
}

/** Write the colour of each value between 0 and `top` to `colours` (3 n); NaN is the lowest. */
export function colourValues(values: ArrayLike<number>, top: number, colours: Float32Array): void {
  const scale = top > 0 ? 255 / top : 0
  for (let i = 0; i < values.length; i++) {
    const at = 3 * Math.max(0, Math.min(255, Math.round(values[i] * scale) || 0))
    colours[3 * i] = LINEAR_COLOURS[at]
    colours[3 * i + 1] = LINEAR_COLOURS[at + 1]
    colours[3 * i + 2] = LINEAR_COLOURS[at + 2]
  }
}

/** The next of 1, 2, 5 times a power of ten: the end of a scale that reaches `value`. */
export function niceTop(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 0
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9)
  const step = [1, 2, 5].find((factor) => factor * power >= value * (1 - 1e-9)) ?? 10
  return step * power
}

/** The end of a scale that grows at once and shrinks with a margin only, so that it does not flicker. */
export function steadyTop(before: number, value: number, least: number): number {
  const wanted = Math.max(niceTop(value), least)
  return wanted > before || Math.max(niceTop(1.15 * value), least) < before ? wanted : before
}
