import { note } from './store'

/** Let the browser save something, named by the time. */
export function saveBlob(blob: Blob, ending: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = `softform-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.${ending}`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}

/** Let the browser save the picture as it is drawn now. */
export function saveScreenshot(): void {
  const canvas = document.querySelector<HTMLCanvasElement>('.scene canvas')
  if (!canvas) {
    note('info', 'There is no picture to save.')
    return
  }
  window.softformPicture?.draw()
  canvas.toBlob((blob) => blob && saveBlob(blob, 'png'))
}
