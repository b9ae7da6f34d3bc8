import type { ChatTemplate } from '../template/chat-template.ts';
import { isToolUse } from '../template/template-message.ts';
import { codeControls } from './call-pieces.ts';

/**
 * Returns a chat template that renders conversations with tools by the model's second template (Hermes 3, Command R),
 * and all others by `template`. `compile` creates the second template when it is first used, so one that cannot be used
 * fails only conversations with tools.
 */
export function withToolTemplate(template: ChatTemplate, compile: () => ChatTemplate): ChatTemplate {
  let compiled: ChatTemplate | undefined;
  const forTools = (): ChatTemplate => {
    compiled ??= compile();
    return compiled;
  };
  return {
    ...template,
    tools: () => forTools().tools(),
    render(messages, options) {
      const chosen = options?.tools || messages.some(isToolUse) ? forTools() : template;
      return chosen.render(messages, options);
    },
  };
}

/**
 * Returns the same template, except that `tools()` returns null if it writes arguments between tags that contain
 * control tokens (GLM-4.5): the grammar writes arguments as text, in which the model could not write these tokens.
 */
export function withTextTags(template: ChatTemplate, controls: ReadonlyMap<string, number>): ChatTemplate {
  const tools = () => {
    const format = template.tools();
    const tags = Object.values(format?.tags ?? {}).join('');
    return codeControls(tags, controls) === tags ? format : null;
  };
  return { ...template, tools };
}
