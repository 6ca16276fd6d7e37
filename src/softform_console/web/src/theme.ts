import { create } from 'zustand'

/** Follows the system unless the operator has chosen. */
export type Theme = 'dark' | 'light'

const KEY = 'softform-theme'
const system = matchMedia('(prefers-color-scheme: light)')
const useThemeStore = create<{ theme: Theme }>(() => ({ theme: chosen() }))

function chosen(): Theme {
  let stored: string | null = null
  try {
    stored = localStorage.getItem(KEY)
  } catch {
    // Storage is refused in private windows.
  }
  return stored === 'dark' || stored === 'light' ? stored : system.matches ? 'light' : 'dark'
}

/** Show the theme, and follow the system's. */
export function startTheme(): void {
  const show = () => void (document.documentElement.dataset.theme = useThemeStore.getState().theme)
  useThemeStore.subscribe(show)
  system.addEventListener('change', () => useThemeStore.setState({ theme: chosen() }))
  show()
}

/** Change between dark and light. */
export function toggleTheme(): void {
  const theme = useThemeStore.getState().theme === 'dark' ? 'light' : 'dark'
  useThemeStore.setState({ theme })
  try {
    localStorage.setItem(KEY, theme)
  } catch {
    // Then it lasts until the page is closed.
  }
}

/** The theme, for components. */
export function useTheme(): Theme {
  return useThemeStore((store) => store.theme)
}

/** A colour of the style sheet, which the scene takes, too. */
export function useThemeColour(name: string): string {
  useTheme()
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}
