#!/usr/bin/env node
import { enableCompileCache } from 'node:module';

// Before anything else is loaded: from the second start on, the program is there in a third of the time.
enableCompileCache();
const { main } = await import('./cli/main.ts');
await main();
