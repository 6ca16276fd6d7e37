import { resolve } from 'node:path'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  base: './',
  plugins: [react()],
  resolve: {
    // The headset's emulator hangs on one dynamic import of @pmndrs/xr; tests inject their own, so it is not shipped.
    alias: [{ find: /^\.\/emulate\.js$/, replacement: resolve(import.meta.dirname, 'src/no-emulator.ts') }],
    // Not zustand: @react-three/xr needs its own version of it.
    dedupe: ['three', 'react', 'react-dom'],
  },
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    sourcemap: false,
    chunkSizeWarningLimit: 2000,
    reportCompressedSize: false,
  },
})
