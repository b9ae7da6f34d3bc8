import { Command } from 'commander';
import { addServe } from '../../adapters/node/cli/commands/serve.ts';
import { composeScripted } from '../scripted-backend/compose.ts';

// Runs `assay serve` on a scripted backend, as a process of its own. SCRIPT is the script as JSON.
const program = new Command('assay');
addServe(program, composeScripted(JSON.parse(process.env.SCRIPT ?? '{}')));
await program.parseAsync();
