import { useEffect, useMemo } from 'react'
import * as THREE from 'three'

/** Pixels a metre of a board. */
const SHARPNESS = 1600

/** Lines of text as a texture for a plane of some size, m, the first one large. */
export function useWriting(text: string, width: number, height: number, ground: string): THREE.CanvasTexture {
  const texture = useMemo(() => {
    const canvas = document.createElement('canvas')
    canvas.width = SHARPNESS * width
    canvas.height = SHARPNESS * height
    const made = new THREE.CanvasTexture(canvas)
    made.colorSpace = THREE.SRGBColorSpace
    return made
  }, [width, height])
  useEffect(() => () => texture.dispose(), [texture])
  useEffect(() => {
    const pen = (texture.image as HTMLCanvasElement).getContext('2d')!
    pen.fillStyle = ground
    pen.fillRect(0, 0, SHARPNESS * width, SHARPNESS * height)
    pen.fillStyle = '#ffffff'
    text.split('\n').forEach((line, k) => {
      pen.font = k === 0 ? '700 56px system-ui, sans-serif' : '28px system-ui, sans-serif'
      pen.fillText(line, 24, k === 0 ? 80 : 100 + 40 * k)
    })
    texture.needsUpdate = true
  }, [texture, text, width, height, ground])
  return texture
}
