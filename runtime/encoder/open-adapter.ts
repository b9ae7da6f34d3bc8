import { COUNTED_LIMITS } from '../../lib/limits/request-size.ts';
import type { ModelContract } from '../../lib/schema/model-list.ts';
import type { DecisionContract } from '../contracts/contract.ts';
import { contractText } from '../contracts/contract-text.ts';
import { contractInfo, type EncoderContract } from '../contracts/encoder-contracts.ts';
import { inWords } from '../contracts/question.ts';
import { readModelText } from '../text/model-files.ts';
import { createTextModel } from '../text/text-model.ts';
import type { Adapter } from './adapter.ts';
import { gliclassAdapter } from './contracts/gliclass.ts';
import { gliner2Adapter } from './contracts/gliner2.ts';
import { markerAdapter } from './contracts/marker.ts';
import { openJevAdapter } from './contracts/open-jev.ts';
import { nliAdapter, openDecisionAdapter } from './contracts/pairs.ts';
import { wholeAdapter } from './contracts/whole.ts';
import { createEncoderTokenizer, type EncoderTokenizer } from './encoder-tokenizer.ts';

/** Holds the adapter of the model in a folder. */
export interface OpenedAdapter {
  adapter: Adapter;
  info: ModelContract;
  /** Id of the token that fills up short rows, which no other token sees. */
  pad: number;
}

/**
 * Opens the adapter of the model in a folder, of an encoder or of a decision model that reads its whole prompt at once.
 * Throws `engine_failed` for a tokenizer without the tokens that the contract needs.
 *
 * @param roles names of the model's graphs
 */
export async function adapterInFolder(
  folder: string,
  contract: EncoderContract | DecisionContract,
  roles: ReadonlySet<string>,
): Promise<OpenedAdapter> {
  const text = await readModelText(folder);
  if ('name' in contract) {
    const tokenizer = createEncoderTokenizer(text);
    const adapter = openAdapter(contract, tokenizer, roles);
    return { adapter, info: contractInfo(contract), pad: tokenizer.special.pad };
  }
  const mostTokens = COUNTED_LIMITS * contract.maxTokens;
  const encoder = contractText(createTextModel(text, { mostTokens }), mostTokens);
  return { adapter: wholeAdapter(contract, contract.open(encoder, folder), encoder), info: contract.info, pad: 0 };
}

/**
 * Creates the adapter of a contract for a model's tokenizer. Throws `engine_failed` for a tokenizer without the tokens
 * that the contract needs.
 *
 * @param roles names of the model's graphs
 */
export function openAdapter(
  contract: EncoderContract,
  tokenizer: EncoderTokenizer,
  roles: ReadonlySet<string>,
): Adapter {
  const adapter = adapterOf(contract, tokenizer.reading(READ_IN_TEXTS[contract.name] ?? []), roles);
  return { ...adapter, decide: (questions, ...about) => adapter.decide(questions.map(inWords), ...about) };
}

/**
 * Control tokens that the authors' code reads in users' texts, as the reference's rows show: their numbers are kept.
 * All others, and those that mark options and questions above all, are ordinary text.
 */
export const READ_IN_TEXTS: Partial<Record<EncoderContract['name'], readonly ('sep' | 'mask')[]>> = {
  laya: ['sep'],
  jevhome: ['sep'],
  julia: ['mask'],
  opendecider: ['sep', 'mask'],
  nli: ['sep', 'mask'],
  'open-decision': ['sep', 'mask'],
  verdict: ['sep', 'mask'],
  'open-jev': ['sep', 'mask'],
};

function adapterOf(contract: EncoderContract, tokenizer: EncoderTokenizer, roles: ReadonlySet<string>): Adapter {
  switch (contract.name) {
    case 'laya':
    case 'julia':
    case 'jevhome':
    case 'opendecider':
    case 'decision-tune':
      return markerAdapter(contract, tokenizer);
    case 'nli':
      return nliAdapter(contract, tokenizer);
    case 'open-decision':
      return openDecisionAdapter(contract, tokenizer);
    case 'gliclass':
    case 'verdict':
      return gliclassAdapter(contract, tokenizer);
    case 'open-jev':
      return openJevAdapter(contract, tokenizer);
    case 'gliner2':
      return gliner2Adapter(contract, tokenizer, roles);
  }
}
