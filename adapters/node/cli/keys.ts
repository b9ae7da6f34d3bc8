import { type Command, InvalidArgumentError } from 'commander';
import { assayHome } from '../config.ts';
import { KeysStore } from '../keys-file.ts';

const HOME = ['--home <folder>', 'where keys are kept (env: ASSAY_HOME, default: ~/.assay)'] as const;

/** `assay keys` */
export function addKeys(program: Command): void {
  const keys = program.command('keys').description('Make, list and revoke API keys.');
  const storeOf = (flags: { home?: string }) => new KeysStore(assayHome(flags, process.env));

  keys
    .command('create')
    .description('Make a key. It is shown this once; only its hash is kept.')
    .argument('<name>', 'name for logs and for revoking', keyName)
    .option('--models <pattern...>', 'models it may use, with * for any characters', ['*'])
    .option('--requests-per-minute <number>', 'limit (default: none)', wholeNumber)
    .option('--admin', 'may load, unload, download and delete on the boxes of an edge', false)
    .option(...HOME)
    .action(async (name: string, flags: CreateFlags) => {
      const { models, requestsPerMinute, admin } = flags;
      const limit = requestsPerMinute === undefined ? {} : { requestsPerMinute };
      console.log(await storeOf(flags).create({ name, models, scopes: admin ? ['admin'] : [], ...limit }));
    });

  keys
    .command('list')
    .description('List the keys by name.')
    .option(...HOME)
    .action(async (flags: { home?: string }) => {
      const all = await storeOf(flags).list();
      if (all.length === 0) console.log('There are no keys. Make one with: assay keys create my-key');
      for (const { name, models, requestsPerMinute, scopes, created } of all) {
        const limit = requestsPerMinute === undefined ? 'no limit' : `${requestsPerMinute} requests a minute`;
        console.log([name, created.slice(0, 10), models.join(' '), limit, ...scopes].join('\t'));
      }
    });

  keys
    .command('revoke')
    .description('Take a key back, at once.')
    .argument('<name>')
    .option(...HOME)
    .action(async (name: string, flags: { home?: string }) => {
      await storeOf(flags).revoke(name);
      console.log(`The key ${name} is revoked.`);
    });
}

interface CreateFlags {
  home?: string;
  models: string[];
  requestsPerMinute?: number;
  admin: boolean;
}

function keyName(text: string): string {
  if (/^[\w.-]{1,64}$/.test(text)) return text;
  throw new InvalidArgumentError('Use 1 to 64 of A-Z a-z 0-9 . _ -');
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Use a whole number from 1.');
}
