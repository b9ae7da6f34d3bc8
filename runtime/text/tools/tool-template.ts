import type { ChatTemplate } from '../chat-template.ts';
import { isToolUse } from '../template-message.ts';

/**
 * Returns a model's chat template, which renders conversations with tools by the model's second template (Hermes 3,
 * Command R). `compile` creates that one at its first use. Errors of a second template that cannot be used concern such
 * conversations only.
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
