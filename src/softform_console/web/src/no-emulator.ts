/** Stands in for the headset's emulator, which is not shipped. */
export function emulate(): never {
  throw new Error('This page has no emulator of headsets.')
}
