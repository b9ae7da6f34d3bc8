import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ChatCompletionChunk } from '../../../lib/schema/chat-completion.ts';
import { ApiError, call } from '../api.ts';
import { MediaField, MediaView } from '../media/media-field.tsx';
import { chatContent, type PickedFile } from '../media/media-file.ts';
import { Problem } from '../problem.tsx';
import { readEvents } from '../read-events.ts';

interface Message {
  role: 'user' | 'assistant';
  content: string;
  media: PickedFile | undefined;
  reasoning: string;
  /** Text below a finished answer: its speed, and whether it was cut. */
  note: string;
}

const said = (role: Message['role'], content: string, media?: PickedFile): Message => ({
  role,
  content,
  media,
  reasoning: '',
  note: '',
});

/**
 * Shows a conversation with the loaded model. Answers are streamed; reasoning is collapsed. `obstacle` says why the model
 * cannot chat, if it cannot; `loading` is true while one is being loaded, when nothing can be asked.
 */
export function ChatTab({ obstacle, loading }: { obstacle: string | undefined; loading: boolean }) {
  const [messages, setMessages] = useState<Message[]>([]);
  const [text, setText] = useState('');
  const [media, setMedia] = useState<PickedFile | undefined>();
  const [error, setError] = useState<unknown>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const chat = useRef<HTMLDivElement>(null);
  const follow = useFollowedEnd(chat, messages);

  const send = async () => {
    const question = text.trim();
    if ((question === '' && !media) || running || loading || obstacle) return;
    const history = [...messages, said('user', question, media)];
    const answer = said('assistant', '');
    const show = () => setMessages([...history, { ...answer }]);
    const stop = new AbortController();
    setText('');
    setMedia(undefined);
    setError(null);
    setRunning(stop);
    follow();
    show();
    try {
      const body = {
        messages: history.map(({ role, content, media: file }) => ({ role, content: chatContent(content, file) })),
        stream: true,
      };
      const response = await call('/v1/chat/completions', { body, signal: stop.signal });
      const { finishReason, tokensPerSecond } = await readChat(response, ({ reasoning, content }) => {
        answer.reasoning += reasoning;
        answer.content += content;
        show();
      });
      answer.note = [
        ...(tokensPerSecond === null ? [] : [`${tokensPerSecond.toFixed(1)} tokens per second`]),
        ...(finishReason === 'length' ? ['cut: the answer reached its token limit'] : []),
      ].join(' · ');
      show();
    } catch (cause) {
      if (stop.signal.aborted) {
        answer.note = 'stopped';
        show();
      } else {
        setError(cause);
        if (answer.content === '') {
          // Puts the question back into the input field for another attempt, unless the user has begun another one.
          setMessages(messages);
          setText((begun) => begun || question);
          setMedia((chosen) => chosen ?? media);
        }
      }
    }
    setRunning(null);
  };

  return (
    <div class="chat" ref={chat}>
      <div class="messages" role="log" aria-label="Conversation">
        {messages.length === 0 && (
          <p class="empty">
            {obstacle
              ? `${obstacle} Load a chat model.`
              : 'Say something. The starter model chats poorly; load a published model for real conversations.'}
          </p>
        )}
        {messages.map(({ role, content, media: file, reasoning, note }) => (
          <article class={`message ${role}`} aria-label={role === 'user' ? 'You' : 'Model'}>
            {reasoning && (
              <details>
                <summary>Reasoning</summary>
                <p>{reasoning}</p>
              </details>
            )}
            {file && (
              <div class="media">
                <MediaView media={file} />
              </div>
            )}
            <p>{content || (role === 'assistant' && running ? '…' : '')}</p>
            {note && <small>{note}</small>}
          </article>
        ))}
      </div>
      <Problem error={error} />
      <div class="composer">
        <MediaField
          id="chat-media"
          label="Add an image or a recording (for models that read them)"
          media={media}
          onChange={(file) => {
            setMedia(file);
            setError(null);
          }}
          onError={setError}
        />
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            void send();
          }}
        >
          <label for="chat-text" class="grow">
            Message
            <textarea
              id="chat-text"
              ref={field}
              rows={2}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
                event.preventDefault();
                event.currentTarget.form?.requestSubmit();
              }}
            />
          </label>
          {running ? (
            <button type="button" onClick={() => running.abort()}>
              Stop
            </button>
          ) : (
            <button type="submit" class="primary" disabled={loading || obstacle !== undefined}>
              {loading ? 'Loading the model…' : 'Send'}
            </button>
          )}
          <button
            type="button"
            disabled={running !== null || messages.length === 0}
            onClick={() => {
              setMessages([]);
              setError(null);
              field.current?.focus();
            }}
          >
            Clear
          </button>
        </form>
      </div>
    </div>
  );
}

/** Distance from the end of the page, in pixels, within which the user counts as having scrolled to it. */
const NEAR_PX = 60;

/**
 * Scrolls to the end of the page whenever `content` changes and `element` is shown, unless the user has scrolled away
 * from the end. Returns a function that makes the next change of `content` scroll in any case.
 */
function useFollowedEnd(element: RefObject<HTMLElement | null>, content: unknown): () => void {
  const following = useRef(true);
  useEffect(() => {
    const look = () => {
      if (!isShown(element)) return;
      const { scrollHeight } = document.documentElement;
      following.current = scrollY + innerHeight >= scrollHeight - NEAR_PX;
    };
    addEventListener('scroll', look);
    return () => removeEventListener('scroll', look);
  }, [element]);
  useLayoutEffect(() => {
    if (following.current && isShown(element)) scrollTo(0, document.documentElement.scrollHeight);
  }, [element, content]);
  return () => {
    following.current = true;
  };
}

const isShown = ({ current }: RefObject<HTMLElement | null>) => current !== null && current.offsetParent !== null;

interface ChatDelta {
  reasoning: string;
  content: string;
}

interface ChatEnd {
  finishReason: string | null;
  tokensPerSecond: number | null;
}

/**
 * Reads a streamed chat completion: calls `onDelta` with each new part, and returns how the answer ended. Throws
 * `ApiError` if the stream reports an error or ends early, and an `AbortError` if the request was aborted.
 */
async function readChat(response: Response, onDelta: (delta: ChatDelta) => void): Promise<ChatEnd> {
  const end: ChatEnd = { finishReason: null, tokensPerSecond: null };
  let done = false;
  await readEvents(response, (data) => {
    if (data === '[DONE]') {
      done = true;
      return;
    }
    const { choices, metrics }: ChatCompletionChunk = JSON.parse(data);
    const choice = choices[0];
    const { reasoning_content: reasoning = '', content = '' } = choice?.delta ?? {};
    if (reasoning || content) onDelta({ reasoning, content });
    if (choice?.finish_reason) end.finishReason = choice.finish_reason;
    if (metrics) end.tokensPerSecond = metrics.tokens_per_second;
  });
  if (!done) throw new ApiError(0, 'stream_ended', 'The stream ended before the answer did. Ask again.');
  return end;
}
