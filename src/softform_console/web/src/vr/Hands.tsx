import { useFrame } from '@react-three/fiber'
import { useXRInputSourceState } from '@react-three/xr'
import { useRef } from 'react'
import { reel, removeHeld } from '../scene/drag'

/** Speed of what a thumb-stick pushes or pulls along its ray, m/s, and what of its way counts as rest. */
const SPEED = 0.25
const REST = 0.1

/** The thumb-stick pushes and pulls what its hand holds; a squeeze removes it. */
export function Hands() {
  const left = useXRInputSourceState('controller', 'left')
  const right = useXRInputSourceState('controller', 'right')
  const squeezed = useRef({ left: false, right: false })
  useFrame((_, seconds) => {
    for (const controller of [left, right]) {
      const hand = controller?.inputSource.handedness
      if (!controller || (hand !== 'left' && hand !== 'right')) continue
      const push = -(controller.gamepad['xr-standard-thumbstick']?.yAxis ?? 0)
      if (Math.abs(push) > REST) reel(hand, push * SPEED * Math.min(seconds, 0.1))
      const presses = controller.gamepad['xr-standard-squeeze']?.state === 'pressed'
      if (presses && !squeezed.current[hand]) removeHeld(hand)
      squeezed.current[hand] = presses
    }
  })
  return null
}
