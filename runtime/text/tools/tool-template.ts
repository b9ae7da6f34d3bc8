import type { ChatTemplate } from '../chat-template.ts';
import { isToolUse } from '../template-message.ts';

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
