import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Debian's package; CHROMIUM_PATH names another one. */
const EXECUTABLE = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';

export const hasChromium = existsSync(EXECUTABLE);

/** Starts a browser that makes no requests of its own. */
export function launch(): Promise<Browser> {
  const quiet = ['--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
  return chromium.launch({ executablePath: EXECUTABLE, args: ['--no-sandbox', ...quiet] });
}
