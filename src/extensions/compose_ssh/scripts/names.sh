# Containers whose names begin like those of a project, as rows of belonging.sh, which stands before it. Parameters: the engine's
# program, the project.
sbx_rows_of "$1" container --filter "name=$2-"
