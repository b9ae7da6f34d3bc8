import { playAllIn } from './play.ts';

playAllIn('socket');
