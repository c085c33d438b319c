"""What etcd, frontend and worker logs say: stage, cause, remedy. Pure."""
