import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ModelCapabilities } from '../../../lib/schema/model-list.ts';
import { anotherTask, moved, obstacle, type TaskDraft } from './task.ts';

interface Props {
  tasks: readonly TaskDraft[];
  /** Describes what the loaded model can do; null if it is not known. */
  abilities: ModelCapabilities | null;
  onChange(tasks: TaskDraft[]): void;
}

/** Shows the tasks, and adds, moves and deletes them. */
export function TaskList({ tasks, abilities, onChange }: Props) {
  // Id of the element that gets the focus once the new list is shown. The one that had it may be gone or disabled.
  const focus = useRef('');
  useLayoutEffect(() => {
    if (focus.current !== '') document.getElementById(focus.current)?.focus();
    focus.current = '';
  }, [tasks]);
  const change = (changed: TaskDraft[], focused: string) => {
    focus.current = focused;
    onChange(changed);
  };

  const add = () => {
    const task = anotherTask(tasks);
    change([...tasks, task], taskElementId(task, 'text'));
  };
  const move = (task: TaskDraft, from: number, step: 1 | -1) => {
    const list = moved(tasks, from, step);
    const [isFirst, isLast] = [list[0] === task, list.at(-1) === task];
    const button = isLast || (step === -1 && !isFirst) ? 'up' : 'down';
    change(list, taskElementId(task, button));
  };
  const remove = (index: number) => {
    const rest = tasks.toSpliced(index, 1);
    const next = rest[Math.min(index, rest.length - 1)];
    if (next) change(rest, taskElementId(next, 'name'));
  };

  return (
    <>
      {tasks.map((task, i) => (
        <TaskEditor
          key={task.id}
          task={task}
          abilities={abilities}
          index={i}
          count={tasks.length}
          onChange={(changed) => onChange(tasks.with(i, changed))}
          onMove={(step) => move(task, i, step)}
          onRemove={() => remove(i)}
        />
      ))}
      <button type="button" class="add" onClick={add}>
        Add task
      </button>
    </>
  );
}

interface EditorProps {
  task: TaskDraft;
  /** Describes what the loaded model can do; null if it is not known. */
  abilities: ModelCapabilities | null;
  index: number;
  count: number;
  onChange(task: TaskDraft): void;
  onMove(step: 1 | -1): void;
  onRemove(): void;
}

/** Returns the id of the HTML element of a task's field or button. */
const taskElementId = ({ id }: TaskDraft, name: 'type' | 'name' | 'text' | 'list' | 'up' | 'down'): string =>
  `task-${id}-${name}`;

function TaskEditor({ task, abilities, index, count, onChange, onMove, onRemove }: EditorProps) {
  const decide = task.type === 'decide';
  const asks = decide || task.type === 'multi';
  const title = task.name || `task ${index + 1}`;
  const why = obstacle(task, abilities);
  return (
    <fieldset class={why === '' ? 'task' : 'task unanswerable'}>
      <legend>Task {index + 1}</legend>
      <div class="row">
        <label for={taskElementId(task, 'type')} class="narrow">
          Type
          <select
            id={taskElementId(task, 'type')}
            value={task.type}
            onChange={(event) => onChange({ ...task, type: event.currentTarget.value as TaskDraft['type'] })}
          >
            <option value="decide">decide</option>
            <option value="multi">many labels</option>
            <option value="extract" disabled={abilities?.extract === false}>
              extract
            </option>
            <option value="fields" disabled={abilities?.extract === false}>
              typed fields
            </option>
          </select>
        </label>
        <label for={taskElementId(task, 'name')}>
          Name
          <input
            id={taskElementId(task, 'name')}
            value={task.name}
            spellcheck={false}
            onInput={(event) => onChange({ ...task, name: event.currentTarget.value })}
          />
        </label>
        <div class="tools">
          <button
            type="button"
            id={taskElementId(task, 'up')}
            title="Move up"
            aria-label={`Move ${title} up`}
            disabled={index === 0}
            onClick={() => onMove(-1)}
          >
            ↑
          </button>
          <button
            type="button"
            id={taskElementId(task, 'down')}
            title="Move down"
            aria-label={`Move ${title} down`}
            disabled={index === count - 1}
            onClick={() => onMove(1)}
          >
            ↓
          </button>
          <button type="button" title="Delete" aria-label={`Delete ${title}`} disabled={count === 1} onClick={onRemove}>
            ×
          </button>
        </div>
      </div>
      {why !== '' && <p class="obstacle">{why}</p>}
      <label for={taskElementId(task, 'text')}>
        {asks ? 'Question' : 'Instruction'}
        <input
          id={taskElementId(task, 'text')}
          value={task.text}
          onInput={(event) => onChange({ ...task, text: event.currentTarget.value })}
        />
      </label>
      <label for={taskElementId(task, 'list')}>
        {asks
          ? optionsLabel(task.type, abilities)
          : task.type === 'fields'
            ? 'Fields, one per line (total: number)'
            : 'Keys, one per line'}
        <textarea
          id={taskElementId(task, 'list')}
          rows={Math.min(6, Math.max(2, task.list.split('\n').length))}
          value={task.list}
          onInput={(event) => onChange({ ...task, list: event.currentTarget.value })}
        />
      </label>
      {decide && task.list.trim() !== '' && (
        <label class="check" title="Shows the model one more option, and its probability beside the others">
          <input
            type="checkbox"
            checked={task.unsure ?? false}
            onChange={(event) => onChange({ ...task, unsure: event.currentTarget.checked })}
          />
          The text may not say (unsure)
        </label>
      )}
    </fieldset>
  );
}

function optionsLabel(type: TaskDraft['type'], abilities: ModelCapabilities | null): string {
  const needed = type === 'multi' || abilities?.decide === 'options';
  return needed ? 'Options, one per line' : 'Options, one per line (empty: a free answer)';
}
