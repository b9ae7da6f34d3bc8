import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ModelCapabilities } from '../../../lib/schema/model-list.ts';
import { anotherTask, moved, type TaskDraft } from './task.ts';
import { TaskEditor, taskElementId } from './task-editor.tsx';

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
