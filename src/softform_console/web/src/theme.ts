import { useSyncExternalStore } from 'react'

/** Follows the system unless the operator has chosen. */
export type Theme = 'dark' | 'light'

const KEY = 'softform-theme'
const listeners = new Set<() => void>()
const system = matchMedia('(prefers-color-scheme: light)')

function stored(): Theme | null {
  try {
    const value = localStorage.getItem(KEY)
    return value === 'dark' || value === 'light' ? value : null
  } catch {
    return null // storage is refused in private windows
  }
}

/** The theme that is shown. */
export function currentTheme(): Theme {
  return stored() ?? (system.matches ? 'light' : 'dark')
}

function apply(): void {
  document.documentElement.dataset.theme = currentTheme()
  for (const listener of listeners) listener()
}

/** Show the theme, and follow the system's. */
export function startTheme(): void {
  system.addEventListener('change', apply)
  apply()
}

/** Change between dark and light. */
export function toggleTheme(): void {
  const next = currentTheme() === 'dark' ? 'light' : 'dark'
  try {
    localStorage.setItem(KEY, next)
  } catch {
    document.documentElement.dataset.theme = next
  }
  apply()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The theme, for components. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, currentTheme)
}

/** A colour of the style sheet, which the scene takes, too. */
export function useThemeColour(name: string): string {
  return useSyncExternalStore(subscribe, () => getComputedStyle(document.documentElement).getPropertyValue(name).trim())
}
