/** What sends the newest of what it is given, at once or when the period since the last is over, ms. */
export function pacer(period: number): { (message: () => void): void; forget(): void } {
  let due: ReturnType<typeof setTimeout> | null = null
  let last = -Infinity
  let pending: (() => void) | null = null
  const flush = () => {
    due = null
    last = performance.now()
    pending?.()
    pending = null
  }
  const pace = (message: () => void) => {
    pending = message
    due ??= setTimeout(flush, Math.max(0, last + period - performance.now()))
  }
  return Object.assign(pace, { forget: () => void (pending = null) })
}
