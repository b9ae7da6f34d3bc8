import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import * as v from 'valibot';
import { messageOf } from '../../../../lib/errors.ts';
import { splitItems, splitMembers } from '../../../../lib/json/members.ts';
import { ExtractResponse } from '../../../../lib/schema/task-response.ts';
import { COMMAND } from '../../command.ts';
import { UsageError } from '../../usage-error.ts';
import { type AskFlags, askFlags, sharedFields, warnIfCut, withModel } from '../ask.ts';
import { distinctFlag, once } from '../parse-flags.ts';
import { type InputFlags, inputFlags, readContext, readJsonInput, readMedia } from '../read-input.ts';
import { screen } from '../screen.ts';

type ExtractFlags = AskFlags & InputFlags & { key?: string[]; schema?: string; textOut?: string };

const TOKENS = 512;

/** Adds the command `assay extract`. */
export function addExtract(program: Command): void {
  askFlags(
    inputFlags(
      program
        .command('extract')
        .description('Extract fields from a text, an image or a recording, as JSON.')
        .argument('[instruction]', 'what to extract; optional with --key or --schema')
        .option('-k, --key <name>', 'a field; repeat the flag for each', distinctFlag)
        .option('--schema <file or JSON>', 'JSON Schema of the answer, or the short form {"total":"number"}', once),
    ).option('--text-out <path>', 'file for the text that was read from --file', once),
  )
    .addHelpText('after', EXTRACT_HELP)
    .action(async (asked: string | undefined, flags: ExtractFlags) => {
      if (asked === undefined && flags.key === undefined && flags.schema === undefined) {
        throw new UsageError('Say what to extract: give an instruction, --key or --schema. For example: -k total');
      }
      const instruction = asked ?? 'Extract the requested fields.';
      const schema = flags.schema === undefined ? {} : { schema: await readJsonInput(flags.schema, '--schema') };
      const context = await readContext(flags, `${COMMAND} extract --key total`);
      if (flags.textOut !== undefined) await writeText(flags.textOut, context);
      const media = await readMedia(flags);
      const answer = await withModel(flags, async (connection, model) => {
        const keys = flags.key === undefined ? {} : { keys: flags.key };
        const body = { model, instruction, context, ...media, ...sharedFields(flags, TOKENS), ...keys, ...schema };
        return (await connection.request('/extract', { body })).text();
      });
      const response = v.parse(v.pipe(v.string(), v.parseJson(), ExtractResponse), answer);
      screen.line(indented(flags.json ? answer : (response.choices[0]?.message.content ?? 'null')));
      warnIfCut(response);
    });
}

/** Writes a text to a file. Throws `UsageError` if that fails. */
async function writeText(file: string, text: string): Promise<void> {
  await writeFile(file, text).catch((cause: unknown) => {
    throw new UsageError(`${resolve(file)} cannot be written: ${messageOf(cause)}`, { cause });
  });
}

const EXTRACT_HELP = `
A field that is not in the text is null.

Examples:
  $ assay extract --key vendor --key total --file invoice.txt
  $ assay extract "The order" --schema '{"vendor":"string","lines":[{"sku":"string","qty":"integer"}]}' < order.txt
  $ assay extract --windows --file contract.pdf -k tenant -k deposit
  $ assay extract --image receipt.jpg -k total -k date
  $ assay extract -k total -f invoice.txt | jq .total`;

/**
 * Formats a JSON text as `JSON.stringify` with an indent of two spaces does, but keeps the order of all members and the
 * spelling of numbers: parsing it would move members that are named by numbers, such as "10". `indent` is put before
 * every line but the first.
 */
export function indented(json: string, indent = ''): string {
  const text = json.trim();
  const inner = `${indent}  `;
  const block = (open: string, parts: readonly string[], close: string) =>
    parts.length === 0 ? open + close : `${open}\n${parts.map((part) => inner + part).join(',\n')}\n${indent}${close}`;
  if (text.startsWith('{')) {
    const members = [...splitMembers(text)];
    return block(
      '{',
      members.map(([name, value]) => `${JSON.stringify(name)}: ${indented(value, inner)}`),
      '}',
    );
  }
  if (!text.startsWith('[')) return text;
  return block(
    '[',
    splitItems(text).map((item) => indented(item, inner)),
    ']',
  );
}
