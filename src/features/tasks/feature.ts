import type { TasksFeature } from '../../app/features/eras.ts';
import { GatewayTasks } from './gateway-tasks.ts';
import { ModernTasks } from './modern-tasks.ts';
import { runServerTasks } from './server-tasks.ts';

export const tasks: TasksFeature = {
  runServerTasks,
  create(options) {
    const all = new GatewayTasks(options);
    return {
      of: (server) => new ModernTasks({ ...server, tasks: all }),
      list: () => all.list(),
      cancelByName: (name) => all.cancelByName(name),
      leave: () => all.leave(),
      close: () => all.close(),
    };
  },
};
