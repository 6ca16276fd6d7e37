import { createXRStore } from '@react-three/xr'

/**
 * Headsets. All controllers are read by the standard mapping of WebXR gamepads (public/webxr), and none has a model:
 * what would be fetched for that from another host is not needed to point, pull and press.
 */
export const vr = createXRStore({
  emulate: false,
  offerSession: false,
  enterGrantedSession: false,
  baseAssetPath: new URL('webxr/', document.baseURI).href,
  defaultControllerProfileId: 'softform-generic',
  controller: { model: false, grabPointer: false, teleportPointer: false },
  hand: { model: false, grabPointer: false, teleportPointer: false },
})

/** Whether this browser can show the robot in a headset. */
export async function hasHeadset(): Promise<boolean> {
  return (await navigator.xr?.isSessionSupported('immersive-vr').catch(() => false)) ?? false
}
