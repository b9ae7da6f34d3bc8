#!/usr/bin/env node
import { Command } from 'commander';
import { VERSION } from '../../lib/version.ts';
import { addKeys } from './cli/keys.ts';
import { addServe } from './cli/serve.ts';
import { compose } from './compose.ts';

const program = new Command('assay')
  .description('Many small judgement tasks about one shared context, in one request, with a local language model.')
  .version(VERSION)
  .showHelpAfterError('(assay --help tells more)');
addServe(program, compose);
addKeys(program);

try {
  await program.parseAsync();
} catch (error) {
  // What goes wrong in use is said in one line; ASSAY_DEBUG shows where it came from.
  console.error(process.env.ASSAY_DEBUG || !(error instanceof Error) ? error : `assay: ${error.message}`);
  process.exit(1);
}
